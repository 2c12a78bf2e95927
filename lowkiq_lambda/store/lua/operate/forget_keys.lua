--! keys receipts
--! needs shard free_memory_first
-- Forgets that jobs with these keys were pushed, so that they can be pushed again. Harmless to repeat.
-- ARGV[4..]  digests, as include/receipts.lua has them; none: all
-- Returns {'OK', how many were remembered}, or a refusal.
local refused = refusal()
if refused then return refused end
free_memory_first()
if #ARGV == 3 then
  local remembered = call('ZCARD', receipts)
  call('UNLINK', receipts)
  return {'OK', remembered}
end
local forgotten = 0
for i = 4, #ARGV do forgotten = forgotten + call('ZREM', receipts, ARGV[i]) end
return {'OK', forgotten}
