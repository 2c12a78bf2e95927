--! keys meta
--! needs mover free_memory_first
-- Lets a shard be taken again that is only still; no earlier move has any effect on it from then on. Harmless to repeat.
-- ARGV[4]  epoch
-- Returns {'OK'}; {'OVER'} where the shard is closed or receiving, or a later move has given it an order; or a refusal.
local refused = outdated()
if refused then return refused end
if call('HEXISTS', meta, 'closed') + call('HEXISTS', meta, 'receiving') > 0 then return OVER end
free_memory_first()
call('HDEL', meta, 'still_until')
call('HSET', meta, 'generation', ARGV[4])
return {'OK'}
