-- API keys. A key is `tm_<key_id>_<secret>`; of the secret only its SHA-256 is here. The secret has 256
-- random bits, so nothing slower than one hash is needed to keep it from being guessed.
create table api_keys (
    key_id text collate "C" not null,
    secret_hash bytea not null,
    -- For people: whose it is, and where it is used.
    name text not null,
    scopes text[] not null,
    -- The stores that it is bound to; null: none, it reaches every store.
    store_ids text[],
    created_at timestamptz not null default now(),
    -- Null: never.
    expires_at timestamptz,
    -- Written at most once a minute.
    last_used_at timestamptz,
    -- A revoked key stays as a row: who may do what, and until when, can be told afterwards, and the
    -- service does not open again because its last key was revoked.
    revoked_at timestamptz,
    -- The key that this one takes the place of; both work until that one is revoked or expires.
    rotated_from text collate "C",
    constraint api_keys_pkey primary key (key_id),
    constraint api_keys_rotated_from foreign key (rotated_from) references api_keys (key_id),
    constraint api_keys_key_id check (key_id ~ '^[0-9a-f]{12}$'),
    constraint api_keys_secret_hash_length check (octet_length(secret_hash) = 32),
    constraint api_keys_name_length check (char_length(name) between 1 and 100),
    constraint api_keys_scopes check (
        cardinality(scopes) > 0
        and scopes <@ array['events:write', 'sales:read', 'finance', 'admin']
    ),
    -- Whoever may make keys could make one for any store.
    constraint api_keys_stores check (
        store_ids is null or (cardinality(store_ids) > 0 and not 'admin' = any (scopes))
    ),
    constraint api_keys_expires_at check (expires_at > created_at)
);
