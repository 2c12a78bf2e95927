--! keys flight meta
--! needs shard free_memory_first journal
-- Refuses all further writes of the shard's holder; what is in flight counts as abandoned. The lease is left to
-- end by itself: until then a handler of the holder may still run. Harmless to repeat.
-- ARGV[4]  the holder's token
-- Returns {'OK'}; {'GONE'} if the shard has no such holder; or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, token, held_until, owner, n = unpack(call('HMGET', meta, 'nonce', 'token', 'until', 'owner', 'call'))
if token ~= ARGV[4] or now >= tonumber(held_until or 0) or nonce:sub(1, 10) == 'abandoned ' then return {'GONE'} end
if nonce:sub(1, 8) == 'evicted ' then return {'OK'} end
free_memory_first()
call('HSET', meta, 'abandoned', 1, 'nonce', 'evicted ' .. nonce, 'now', latest_now)
local ids = call('HKEYS', flight)
enter('evicted', {owner = owner or '', count = #ids, ids = {unpack(ids, 1, math.min(#ids, MOST_IN_ENTRY))}})
write_journal(token, n)
return {'OK'}
