-- Quarantine: events that claim to come from the future. They are no part of the log, move no
-- watermark and count nowhere until somebody releases them, which appends them to the log then.
-- The row stays, so that what was posted first, and when, is never lost.
create table quarantine (
    event_id text collate "C" not null,
    received_at timestamptz not null,
    content_hash bytea not null,
    -- The database's clock and the skew that was allowed when the event came in.
    reason text not null,
    order_id text not null,
    status text not null,
    amount numeric(18, 4) not null,
    currency text not null,
    -- As the till said it, also when the event is released with another one.
    event_time timestamptz not null,
    store_id text,
    till_id text,
    customer_id text,
    item_count bigint,
    attributes jsonb,
    -- What became of it; all four together.
    resolved_at timestamptz,
    action text,
    note text,
    released_seq bigint,
    constraint quarantine_pkey primary key (event_id),
    constraint quarantine_action check (action in ('release', 'reject')),
    constraint quarantine_resolved check (
        (resolved_at is null) = (action is null) and (action is null) = (note is null)
        and (released_seq is not null) = (action is not distinct from 'release')
    ),
    constraint quarantine_content_hash_length check (octet_length(content_hash) = 32),
    constraint quarantine_event_id_length check (char_length(event_id) between 1 and 200)
);
create index quarantine_waiting on quarantine (received_at, event_id) where resolved_at is null;

-- The id of an event in quarantine is taken, though the event stands nowhere in the log: null.
alter table event_keys alter column seq drop not null;
alter table event_conflicts alter column first_seq drop not null;
