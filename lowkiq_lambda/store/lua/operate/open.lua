--! keys meta
--! needs shard
-- Opens the shard under a declaration that its caller has seen registered. Harmless to repeat.
-- ARGV[4]  generation of the declaration
-- ARGV[5]  merge
-- Returns {'OK'}; {'STALE'} where a later generation has given the shard an order; or a refusal.
local refused = refusal()
if refused and refused[1] ~= 'CLOSED' and refused[1] ~= 'MOVING' then return refused end
local last, closed, receiving, still = unpack(call('HMGET', meta, 'generation', 'closed', 'receiving', 'still_until'))
if last and not (tonumber(last) < 2 ^ 53) then error('DAMAGED generation') end
if last and tonumber(last) > tonumber(ARGV[4]) then return {'STALE'} end
-- What the move to this very declaration has closed stays closed.
local of_move = receiving or (closed and closed ~= '1')
if of_move and tonumber(last) == tonumber(ARGV[4]) then return {'STALE'} end
-- First, so that what was closed can be opened when memory is full.
if closed or receiving or still then
  call('HDEL', meta, 'closed', 'closed_at', 'refused_at', 'receiving', 'still_until')
end
call('HSET', meta, 'generation', ARGV[4], 'merge', ARGV[5])
return {'OK'}
