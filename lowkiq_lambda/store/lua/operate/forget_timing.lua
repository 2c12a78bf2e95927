--! keys meta
--! needs shard free_memory_first
-- How long batches took until now counts no more: neither what the shard has kept of that, nor what holders know.
-- Harmless to repeat.
-- Returns {'OK'}, or a refusal.
local refused = refusal()
if refused then return refused end
free_memory_first()
call('HDEL', meta, 'pace')
call('HSET', meta, 'timing_from', latest_now, 'now', latest_now)
return {'OK'}
