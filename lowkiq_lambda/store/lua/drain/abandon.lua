--! keys meta
--! needs shard free_memory_first lease
-- The holder's process is about to exit while a handler still runs: the jobs in flight count as abandoned, and no other
-- holder gets the shard until the process is surely gone.
-- ARGV[4]  nonce
-- ARGV[5]  seconds until then
-- Returns {'OK'}, {'LOST'}, or a refusal.
local refused = refusal()
if refused then return refused end
local nonce, token, held_until = unpack(call('HMGET', meta, 'nonce', 'token', 'until'))
if nonce ~= ARGV[4] or tonumber(held_until) == 0 then return {'LOST'} end
free_memory_first()
call('HSET', meta, 'abandoned', 1, 'nonce', 'abandoned ' .. nonce)
hold(token, tonumber(ARGV[5]), 0)
return {'OK'}
