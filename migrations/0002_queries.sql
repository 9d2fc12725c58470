-- Queries and where each stands. One row is a query's whole progress, so that one conditional
-- update at the start of a commit decides whether that commit may happen at all: it must find the
-- epoch, batch id and position it started from, or another has been faster.
create table queries (
    query_id bigint generated always as identity,
    name text collate "C" not null,
    spec jsonb not null,
    status text not null default 'running',
    -- Why the last attempt failed; cleared by the next commit.
    error text,
    created_at timestamptz not null default now(),
    -- Whoever changes a query from outside raises the epoch; a batch that runs then cannot commit.
    epoch bigint not null default 0,
    start_seq bigint not null,
    position bigint not null,
    next_batch_id bigint not null default 0,
    -- W(n) of the last batch, which closed windows and judges lateness next; and W(n+1).
    watermark timestamptz(3) not null default 'epoch',
    next_watermark timestamptz(3) not null default 'epoch',
    newest_event_time timestamptz,
    constraint queries_pkey primary key (query_id),
    constraint queries_name_unique unique (name),
    constraint queries_name_form check (name ~ '^[a-z0-9][a-z0-9_-]{0,99}$'),
    constraint queries_status check (status in ('running', 'paused')),
    constraint queries_position_range check (position >= start_seq and start_seq >= 0),
    constraint queries_watermark_order check (watermark <= next_watermark)
);
