--! keys meta
--! needs shard free_memory_first let_go
-- A process is surely gone, or a holder has met a fault of its own, and no handler of it runs: the shard is free at once.
-- Its jobs in flight stay there for the next holder to recover, as after any death. Its calls under way are refused.
-- ARGV[4]  prefix  what the nonces of that process begin with, and no others; or the nonce of that holder
-- Returns {'FREED'}, to a repeat too; {'GONE'} where no holder of that process has the shard; or a refusal.
local refused = refusal()
if refused then return refused end
local prefix = ARGV[4]

local nonce, held_until = unpack(call('HMGET', meta, 'nonce', 'until'))
-- The nonce of an evicted holder, or of one that abandoned its jobs, has a word before it.
if not (nonce and nonce:find(prefix, 1, true)) then return {'GONE'} end
if nonce:sub(1, 5) == 'dead ' then return {'FREED'} end
if tonumber(held_until) == 0 then return {'GONE'} end
free_memory_first()
call('HSET', meta, 'nonce', 'dead ' .. nonce)
let_go()
return {'FREED'}
