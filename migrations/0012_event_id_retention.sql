-- Ids are forgotten after a while. Appends write them in the order of seq, so a block range index
-- finds the old ones and costs next to nothing to keep.
create index event_keys_seq on event_keys using brin (seq) with (autosummarize = on);
