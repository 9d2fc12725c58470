-- State: the open windows of each query as of its last commit. Ordered by end, as windows close.
create table window_state (
    query_id bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    currency text not null,
    -- The group-by values as a JSON array of texts and nulls, always written the same way.
    group_keys text collate "C" not null,
    orders bigint not null,
    revenue numeric(38, 4) not null,
    constraint window_state_pkey primary key (query_id, window_end, window_start, currency, group_keys),
    constraint window_state_query foreign key (query_id) references queries on delete cascade,
    constraint window_state_bounds check (window_start < window_end),
    constraint window_state_orders_range check (orders > 0)
);

-- Output rows. In append mode a row is inserted once and never changes; in update and complete
-- mode it is merged until its window closes.
create table window_rows (
    query_id bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    currency text not null,
    group_keys text collate "C" not null,
    orders bigint not null,
    revenue numeric(38, 4) not null,
    -- The batch that wrote the row last.
    batch_id bigint not null,
    written_at timestamptz not null default now(),
    -- What made the row final; null while its window is open.
    closed_by text,
    constraint window_rows_pkey primary key (query_id, window_start, window_end, group_keys, currency),
    constraint window_rows_query foreign key (query_id) references queries on delete cascade,
    constraint window_rows_bounds check (window_start < window_end),
    constraint window_rows_closed_by check (closed_by in ('watermark'))
);
create index window_rows_open on window_rows (query_id, window_end) where closed_by is null;
