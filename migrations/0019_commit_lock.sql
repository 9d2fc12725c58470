-- Two locks in place of one. Whoever draws positions and takes ids holds the append lock; under it the
-- commit lock is taken, and held to the commit. A large append gives the append lock back as soon as it has
-- the commit lock (database/append_copy.rs), so the next takes its ids while it copies its events; all
-- others hold both to the end. seq order stays commit order.
create or replace function append_events(
    guard_us bigint,
    event_ids text[],
    content_hashes bytea[],
    order_ids text[],
    statuses text[],
    amounts numeric[],
    currencies text[],
    event_times timestamptz[],
    store_ids text[],
    till_ids text[],
    customer_ids text[],
    item_counts bigint[],
    attribute_texts text[],
    out first_seq bigint,
    out taken_ids text[],
    out taken_hashes bytea[],
    out taken_seqs bigint[],
    out taken_actions text[]
) language plpgsql volatile
-- A plan for lists of any length, made once: for short ones the planner would else make another each time.
set plan_cache_mode = force_generic_plan as $$
declare
    event_count bigint := cardinality(event_ids);
    received timestamptz;
    inserted bigint;
begin
    perform pg_advisory_xact_lock(8388354993901630059);
    perform pg_advisory_xact_lock(8388354993734774132);
    received := clock_timestamp();
    if guard_us is not null and exists (
        select from unnest(event_times) as event_time
        where event_time > received + guard_us * interval '1 microsecond'
    ) then
        return;
    end if;
    -- Under the lock nobody else draws, so the positions are one block.
    first_seq := nextval('raw_events_seq');
    perform setval('raw_events_seq', first_seq + event_count - 1);
    -- In id order, so that neighbours in the index are written together.
    insert into event_keys (event_id, content_hash, seq)
    select event_id, content_hash, first_seq + nth - 1
    from unnest(event_ids, content_hashes) with ordinality as new_key (event_id, content_hash, nth)
    order by event_id collate "C"
    on conflict on constraint event_keys_pkey do nothing;
    get diagnostics inserted = row_count;
    if inserted < event_count then
        select array_agg(taken.event_id), array_agg(taken.content_hash), array_agg(taken.seq),
            array_agg(quarantine.action)
        into taken_ids, taken_hashes, taken_seqs, taken_actions
        from event_keys taken left join quarantine using (event_id)
        where taken.event_id = any (event_ids)
            and (taken.seq is null or taken.seq < first_seq);
        insert into event_conflicts
            (received_at, event_id, first_seq, first_content_hash, refused_content_hash)
        select received, taken.event_id, taken.seq, taken.content_hash, new_key.content_hash
        from unnest(event_ids, content_hashes) as new_key (event_id, content_hash)
            join unnest(taken_ids, taken_hashes, taken_seqs) as taken (event_id, content_hash, seq)
                using (event_id)
        where taken.content_hash <> new_key.content_hash;
        -- An id that was taken may have been forgotten since; all of it is to be tried again then.
        if coalesce(cardinality(taken_ids), 0) + inserted <> event_count then
            raise exception 'an event id was forgotten a moment ago'
                using errcode = 'serialization_failure';
        end if;
    end if;
    insert into raw_events (seq, received_at, event_id, order_id, status, amount, currency,
        event_time, store_id, till_id, customer_id, item_count, attributes)
    select first_seq + nth - 1, received, event_id, order_id, status, amount, currency, event_time,
        store_id, till_id, customer_id, item_count, attribute_text::jsonb
    from unnest(event_ids, order_ids, statuses, amounts, currencies, event_times, store_ids, till_ids,
        customer_ids, item_counts, attribute_texts) with ordinality as new_event (event_id, order_id,
        status, amount, currency, event_time, store_id, till_id, customer_id, item_count,
        attribute_text, nth)
    where taken_ids is null or not event_id = any (taken_ids);
end
$$;
