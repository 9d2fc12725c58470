-- Ids are forgotten in the order of the log, by the log: how far that came stands here, so appends need
-- not keep a second index of the ids.
create table event_id_retention (
    forgotten_before bigint not null,
    constraint event_id_retention_forgotten_before_not_negative check (forgotten_before >= 0)
);
create unique index event_id_retention_one_row on event_id_retention ((true));
insert into event_id_retention (forgotten_before) values (0);
drop index event_keys_seq;
