-- Which replica runs the queries. One row: its holder leads until expires_at by the clock of this
-- server, and renews before that. Each change of the leader raises the epoch.
--
-- Whoever moves a query locks the row of their epoch `for key share`, as the check of a foreign key
-- would, and so until they commit. A renewal changes no key and waits for nobody; a takeover changes
-- the key, so it waits for every commit of the epoch that it ends, and none comes after it.
create table leadership (
    epoch bigint not null,
    -- The application_name of its sessions; whoever takes over ends what they left open.
    holder text not null,
    -- The session that renewed last. Once it is gone, so is the holder, and nobody waits any longer.
    session_pid int,
    session_start timestamptz,
    expires_at timestamptz not null,
    constraint leadership_pkey primary key (epoch)
);
create unique index leadership_one_row on leadership ((true));
insert into leadership (epoch, holder, expires_at) values (0, 'nobody', 'epoch');

-- Runs that were asked of a replica which does not lead: the leader takes them from here and leaves
-- its answer, which the replica that was asked collects.
create table run_requests (
    run_id bigint generated always as identity,
    query_id bigint not null,
    batches_max int,
    asked_at timestamptz not null default clock_timestamp(),
    -- Of the leader that took it; the next one takes it again unless it is answered.
    epoch bigint not null default 0,
    answer text,
    -- Why it failed.
    error text,
    -- What it did: entries of progress.
    batch_ids bigint[],
    constraint run_requests_pkey primary key (run_id),
    constraint run_requests_query foreign key (query_id) references queries on delete cascade,
    constraint run_requests_answer check (answer in ('ran', 'paused', 'busy', 'failed')),
    constraint run_requests_whole check (
        (batch_ids is not null) = (answer is not distinct from 'ran')
        and (error is not null) = (answer is not distinct from 'failed')
    )
);
create index run_requests_query_id on run_requests (query_id);
