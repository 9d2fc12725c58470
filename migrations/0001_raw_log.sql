-- The raw log: every accepted record, in the order of seq, never updated.
--
-- Partitioned by seq so that old data can be dropped or archived and indexes stay small. The
-- service attaches the next partition before it is needed (database/partitions.rs).
-- seq order is commit order: every append holds one advisory lock from before its first seq is
-- drawn to its commit, so a reader may ask for seq > position and miss nothing.
create sequence raw_events_seq as bigint;

create table raw_events (
    seq bigint not null,
    received_at timestamptz not null,
    kind text not null default 'event',
    event_id text collate "C" not null,
    order_id text,
    status text,
    amount numeric(18, 4),
    currency text,
    event_time timestamptz not null,
    store_id text,
    till_id text,
    customer_id text,
    item_count bigint,
    attributes jsonb,
    constraint raw_events_pkey primary key (seq),
    constraint raw_events_kind check (kind in ('event')),
    constraint raw_events_whole check (
        order_id is not null and status is not null and amount is not null and currency is not null
    ),
    constraint raw_events_event_id_length check (char_length(event_id) between 1 and 200),
    constraint raw_events_currency_code check (currency ~ '^[A-Z]{3}$'),
    constraint raw_events_amount_range check (amount > -1e14 and amount < 1e14),
    constraint raw_events_event_time_range check (
        event_time >= '1900-01-01 00:00:00+00' and event_time < '2200-01-01 00:00:00+00'
    ),
    constraint raw_events_item_count_range check (item_count >= 0)
) partition by range (seq);

create table raw_events_p00000 partition of raw_events for values from (0) to (10000000);

-- Which event ids are taken. Not partitioned by time: a retry may come after midnight. The hash
-- tells a retry (same content) from a conflict (other content).
create table event_keys (
    event_id text collate "C" not null,
    content_hash bytea not null,
    seq bigint not null,
    constraint event_keys_pkey primary key (event_id),
    constraint event_keys_content_hash_length check (octet_length(content_hash) = 32)
);

-- Events refused because their id was taken by other content; both hashes are kept for audit.
create table event_conflicts (
    conflict_id bigint generated always as identity,
    received_at timestamptz not null,
    event_id text collate "C" not null,
    first_seq bigint not null,
    first_content_hash bytea not null,
    refused_content_hash bytea not null,
    constraint event_conflicts_pkey primary key (conflict_id)
);
create index event_conflicts_event_id on event_conflicts (event_id);
