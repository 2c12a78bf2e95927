--! keys receipts
--! needs shard free_memory_first
-- Forgets that jobs with these keys were pushed, so that they can be pushed again. Harmless to repeat.
-- ARGV[4]    where a step of the look for ids goes on, '0' at first; '' for keys
-- ARGV[5..]  digests of keys, or of ids, as include/receipts.lua has them; none: all
-- Returns {'OK', how many were remembered, where the next step goes on, or '0'}, or a refusal.
local refused = refusal()
if refused then return refused end
local cursor, STEP, ID_DIGEST = ARGV[4], 1000, 6
free_memory_first()
if #ARGV == 4 then
  local remembered = call('ZCARD', receipts)
  call('UNLINK', receipts)
  return {'OK', remembered, '0'}
end
local forgotten = 0
if cursor == '' then
  for i = 5, #ARGV do forgotten = forgotten + call('ZREM', receipts, ARGV[i]) end
  return {'OK', forgotten, '0'}
end
local is_wanted = {}
for i = 5, #ARGV do is_wanted[ARGV[i]] = true end
local after, listed = unpack(call('ZSCAN', receipts, cursor, 'COUNT', STEP))
for i = 1, #listed, 2 do
  if is_wanted[listed[i]:sub(1, ID_DIGEST)] then forgotten = forgotten + call('ZREM', receipts, listed[i]) end
end
return {'OK', forgotten, after}
