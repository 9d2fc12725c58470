-- A moment that is no moment, or a store without a name, cannot be read back: it would keep everybody out.
-- Rows from before are not looked at; whoever changes one is told.
alter table api_keys add constraint api_keys_finite check (
    isfinite(created_at) and isfinite(expires_at) and isfinite(last_used_at) and isfinite(revoked_at)
) not valid;
alter table api_keys add constraint api_keys_store_names check (array_position(store_ids, null) is null) not valid;
