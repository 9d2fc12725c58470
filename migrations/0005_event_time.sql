-- Everything of event time beside tumbling windows: duplicates, heartbeats and idle closing.

-- The log also holds what moves watermarks without being an order: a source that says that it has
-- nothing older, and the service itself after a silence. A replay reads both again, so the same
-- rows come out on any day.
alter table raw_events drop constraint raw_events_kind;
alter table raw_events add constraint raw_events_kind
    check (kind in ('event', 'heartbeat', 'idle_heartbeat'));
-- For how long nothing had come when the service appended an idle heartbeat.
alter table raw_events add column quiet_ms bigint;
alter table raw_events add constraint raw_events_quiet_ms
    check ((kind = 'idle_heartbeat') = (quiet_ms is not null) and quiet_ms >= 0);
alter table raw_events drop constraint raw_events_whole;
alter table raw_events add constraint raw_events_whole check (
    kind <> 'event'
    or (order_id is not null and status is not null and amount is not null and currency is not null)
);

-- Where W(n+1) would stand without idle heartbeats: it tells what closed a window.
alter table queries add column next_watermark_by_sources timestamptz(3) not null default 'epoch';
update queries set next_watermark_by_sources = next_watermark;

alter table window_rows drop constraint window_rows_closed_by;
alter table window_rows add constraint window_rows_closed_by
    check (closed_by in ('watermark', 'idle'));
alter table progress drop constraint progress_closed_by;
alter table progress add constraint progress_closed_by check (closed_by in ('watermark', 'idle'));
alter table dropped_events drop constraint dropped_events_reason;
alter table dropped_events add constraint dropped_events_reason
    check (reason in ('late', 'duplicate'));

-- Keys that a duplicates rule remembers. The engine decides what is new, so nothing has to be
-- unique here, and a key may be longer than an index entry.
create table duplicate_state (
    query_id bigint not null,
    expires_at timestamptz not null,
    key text collate "C" not null,
    constraint duplicate_state_query foreign key (query_id) references queries on delete cascade
);
create index duplicate_state_expiry on duplicate_state (query_id, expires_at);

-- Events that a query could not process, each found alone in the end: the query goes on without
-- them, and its recount leaves them out.
create table poison_events (
    query_id bigint not null,
    seq bigint not null,
    reason text not null,
    found_at timestamptz not null default now(),
    constraint poison_events_pkey primary key (query_id, seq),
    constraint poison_events_query foreign key (query_id) references queries on delete cascade
);
