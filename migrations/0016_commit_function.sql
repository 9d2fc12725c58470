-- What every micro-batch writes, in one round trip to the server: the query moved on, the state of its
-- open windows, its merged rows and its entry of progress. A batch that closes windows or drops events
-- writes more than this in the same transaction; for all others this is the whole commit.
--
-- Volatile, so every statement inside sees what was committed before the lock was taken. The first
-- moves the query from exactly where the batch started, under the lock of its row, and holds the lease
-- until the commit. Where it moves nothing, nothing is written, and moment is null: by leads it can be
-- told whether the lease is lost or another has been faster.
create function commit_batch(
    lease_epoch bigint,
    batch_query_id bigint,
    batch_epoch bigint,
    batch bigint,
    read_from bigint,
    read_to bigint,
    new_watermark timestamptz,
    new_next_watermark timestamptz,
    new_watermark_by_sources timestamptz,
    newest timestamptz,
    state_starts timestamptz[],
    state_ends timestamptz[],
    state_currencies text[],
    state_groups text[],
    state_orders bigint[],
    state_revenues numeric[],
    row_starts timestamptz[],
    row_ends timestamptz[],
    row_currencies text[],
    row_groups text[],
    row_orders bigint[],
    row_revenues numeric[],
    entry_events_in bigint,
    entry_late_events bigint,
    entry_duplicates bigint,
    entry_late_watermark timestamptz,
    entry_time_min timestamptz,
    entry_time_max timestamptz,
    entry_time_avg timestamptz,
    entry_rows_written bigint,
    entry_state_windows bigint,
    entry_state_updated bigint,
    entry_state_removed bigint,
    entry_closed_by text,
    entry_read_us bigint,
    entry_compute_us bigint,
    -- Reading and computing, and what was between them.
    entry_before_us bigint,
    out leads boolean,
    out moment timestamptz,
    -- Since the transaction began.
    out spent_us bigint
) language plpgsql volatile as $$
begin
    perform from leadership where leadership.epoch = lease_epoch for key share;
    leads := found;
    if not leads then
        return;
    end if;
    update queries
    set position = read_to, next_batch_id = batch + 1, watermark = new_watermark,
        next_watermark = new_next_watermark, newest_event_time = newest,
        next_watermark_by_sources = new_watermark_by_sources, error = null
    where query_id = batch_query_id and epoch = batch_epoch and next_batch_id = batch
        and position = read_from
    returning clock_timestamp() into moment;
    if moment is null then
        return;
    end if;
    if cardinality(state_starts) > 0 then
        insert into window_state (query_id, window_start, window_end, currency, group_keys, orders, revenue)
        select batch_query_id, changed.*
        from unnest(state_starts, state_ends, state_currencies, state_groups, state_orders, state_revenues)
            as changed
        on conflict on constraint window_state_pkey
        do update set orders = excluded.orders, revenue = excluded.revenue;
    end if;
    if cardinality(row_starts) > 0 then
        -- What a row that changes said before stays as a version, so that rows can be read as they stood
        -- at any moment.
        insert into window_row_versions (query_id, window_start, window_end, currency, group_keys, orders,
            revenue, batch_id, written_at, replaced_by)
        select old.query_id, old.window_start, old.window_end, old.currency, old.group_keys, old.orders,
            old.revenue, coalesce(old.totals_batch_id, old.batch_id), old.written_at, batch
        from unnest(row_starts, row_ends, row_currencies, row_groups, row_orders, row_revenues)
                as merged (window_start, window_end, currency, group_keys, orders, revenue)
            join window_rows old using (window_start, window_end, currency, group_keys)
        where old.query_id = batch_query_id
            and (old.orders, old.revenue) is distinct from (merged.orders, merged.revenue);
        insert into window_rows as old (query_id, batch_id, totals_batch_id, written_at, window_start,
            window_end, currency, group_keys, orders, revenue)
        select batch_query_id, batch, batch, moment, merged.*
        from unnest(row_starts, row_ends, row_currencies, row_groups, row_orders, row_revenues) as merged
        on conflict on constraint window_rows_pkey
        do update set orders = excluded.orders, revenue = excluded.revenue,
            batch_id = excluded.batch_id, written_at = excluded.written_at,
            totals_batch_id = case
                when (old.orders, old.revenue) is distinct from (excluded.orders, excluded.revenue)
                then excluded.batch_id else coalesce(old.totals_batch_id, old.batch_id) end;
    end if;
    spent_us := extract(epoch from clock_timestamp() - transaction_timestamp()) * 1000000;
    insert into progress (query_id, batch_id, events_in, late_events, duplicates, late_watermark, watermark,
        event_time_min, event_time_max, event_time_avg, rows_written, state_windows, state_updated,
        state_removed, position_from, position_to, read_us, compute_us, commit_us, total_us, closed_by,
        "timestamp")
    values (batch_query_id, batch, entry_events_in, entry_late_events, entry_duplicates,
        entry_late_watermark, new_watermark, entry_time_min, entry_time_max, entry_time_avg,
        entry_rows_written, entry_state_windows, entry_state_updated, entry_state_removed, read_from,
        read_to, entry_read_us, entry_compute_us, spent_us, entry_before_us + spent_us, entry_closed_by,
        moment);
end
$$;
