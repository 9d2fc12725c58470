-- The key that an act was asked for with; null where there was none, and before this column was there.
alter table audit add column key_id text collate "C";
