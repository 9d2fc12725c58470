-- One entry per micro-batch, kept for good.
create table progress (
    query_id bigint not null,
    batch_id bigint not null,
    "timestamp" timestamptz not null default now(),
    events_in bigint not null,
    late_events bigint not null,
    duplicates bigint not null,
    late_watermark timestamptz(3) not null,
    watermark timestamptz(3) not null,
    event_time_min timestamptz,
    event_time_max timestamptz,
    event_time_avg timestamptz,
    rows_written bigint not null,
    state_windows bigint not null,
    state_updated bigint not null,
    state_removed bigint not null,
    position_from bigint not null,
    position_to bigint not null,
    read_us bigint not null,
    compute_us bigint not null,
    commit_us bigint not null,
    total_us bigint not null,
    closed_by text,
    constraint progress_pkey primary key (query_id, batch_id),
    constraint progress_query foreign key (query_id) references queries on delete cascade,
    constraint progress_closed_by check (closed_by in ('watermark'))
);
create index progress_timestamp on progress ("timestamp", query_id, batch_id);

-- The ledger: one entry per event and window that the event missed. The event itself stands in
-- the raw log under the same seq.
create table dropped_events (
    query_id bigint not null,
    seq bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    currency text not null,
    group_keys text collate "C" not null,
    amount numeric(18, 4) not null,
    reason text not null,
    batch_id bigint not null,
    -- The watermark that judged the event.
    watermark timestamptz(3) not null,
    -- How far the event stood behind the newest one of the batches before.
    late_by_ms bigint not null,
    constraint dropped_events_pkey primary key (query_id, seq, window_start, window_end),
    constraint dropped_events_query foreign key (query_id) references queries on delete cascade,
    constraint dropped_events_reason check (reason in ('late'))
);
create index dropped_events_window
    on dropped_events (query_id, window_start, window_end, group_keys, currency);
