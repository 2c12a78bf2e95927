--! keys meta
--! needs shard free_memory_first
-- Asks the shard's holder to let go: it begins and claims nothing more, settles, and gives back the rest. Anybody may
-- take the shard then. Harmless to repeat.
-- ARGV[4]  the holder's token
-- Returns {'OK'}; {'GONE'} if the shard has no such holder; or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, token, held_until = unpack(call('HMGET', meta, 'nonce', 'token', 'until'))
if token ~= ARGV[4] or now >= tonumber(held_until or 0) then return {'GONE'} end
if nonce:sub(1, 10) == 'abandoned ' or nonce:sub(1, 8) == 'evicted ' then return {'GONE'} end
free_memory_first()
call('HSET', meta, 'quiet', token, 'now', latest_now)
return {'OK'}
