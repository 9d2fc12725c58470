-- Corrections, the audit trail, and what a report as of an earlier moment needs.

-- What an output row of update or complete mode said before a batch changed it, written by that
-- batch's own commit: at most one entry per event and window, fewer when batches are large. Append
-- mode never changes a row and writes nothing here.
create table window_row_versions (
    query_id bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    currency text not null,
    group_keys text collate "C" not null,
    orders bigint not null,
    revenue numeric(38, 4) not null,
    -- It stood from this batch's commit …
    batch_id bigint not null,
    written_at timestamptz not null,
    -- … to this one's.
    replaced_by bigint not null,
    constraint window_row_versions_query foreign key (query_id) references queries on delete cascade,
    constraint window_row_versions_order check (batch_id < replaced_by)
);
create index window_row_versions_window on window_row_versions (query_id, window_start, replaced_by);

-- The batch since which the totals are what they are: complete mode writes every row with every
-- batch, and only changes are kept as versions. Null: since batch_id.
alter table window_rows add column totals_batch_id bigint;

-- From when on a query can be read as of any moment: its creation or its last reset. Of rows that
-- were merged before this migration no versions were kept.
alter table queries add column history_since timestamptz;
update queries
set history_since = case when spec ->> 'output_mode' = 'append' then created_at else now() end;
alter table queries alter column history_since set not null;
alter table queries alter column history_since set default now();

-- Numbers are given once, also across a reset.
alter table queries add column next_correction bigint not null default 1;

-- Late events of a final window, booked by somebody. The window's row stays as it is.
create table corrections (
    query_id bigint not null,
    number bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    currency text not null,
    group_keys text collate "C" not null,
    -- The row and the corrections before this one.
    before_orders bigint not null,
    before_revenue numeric(38, 4) not null,
    -- What this one adds.
    orders bigint not null,
    revenue numeric(38, 4) not null,
    note text not null,
    booked_by text not null,
    booked_at timestamptz not null,
    constraint corrections_pkey primary key (query_id, number),
    constraint corrections_query foreign key (query_id) references queries on delete cascade,
    constraint corrections_orders_range check (orders > 0)
);
create index corrections_window on corrections (query_id, window_start, window_end);

-- Which entry of the ledger stands in which correction; the key makes sure that none stands in two.
create table corrected_events (
    query_id bigint not null,
    seq bigint not null,
    window_start timestamptz not null,
    window_end timestamptz not null,
    number bigint not null,
    constraint corrected_events_pkey primary key (query_id, seq, window_start, window_end),
    constraint corrected_events_correction foreign key (query_id, number)
        references corrections on delete cascade
);
create index corrected_events_number on corrected_events (query_id, number);

-- Who did what, and when. It names queries and events by their names, so it outlives them.
create table audit (
    number bigint generated always as identity,
    "at" timestamptz not null default clock_timestamp(),
    action text not null,
    query text,
    event_id text,
    done_by text,
    note text,
    details jsonb not null,
    constraint audit_pkey primary key (number),
    constraint audit_action check (action in (
        'corrections_booked', 'quarantine_released', 'quarantine_rejected', 'query_reset', 'query_deleted'
    ))
);

-- Nothing is overwritten: the service never does, and a slip at the console shall not.
create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is never changed', tg_table_name;
end
$$;
create trigger corrections_unchanged before update on corrections
    for each row execute function refuse_change();
create trigger audit_unchanged before update or delete on audit
    for each row execute function refuse_change();
create trigger audit_not_emptied before truncate on audit
    for each statement execute function refuse_change();
