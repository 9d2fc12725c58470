-- A receipt asks which batch read an event, and which batch closed its window. Progress is kept for
-- good, so both must be found by an index; a batch writes one entry, so the indexes cost it little.
create index progress_position on progress (query_id, position_to, batch_id);
create index progress_watermark on progress (query_id, watermark, batch_id);
