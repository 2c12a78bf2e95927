--! keys due retry morgue
-- Ids of the shard in no order, a step of them, read only.
-- ARGV[4]  which: due or morgue
-- ARGV[5]  cursor, '0' at first
-- ARGV[6]  about how many
-- ARGV[7]  'fresh' for those only that have not failed, else ''
-- Returns {cursor, '0' at the end, ids looked at, {id, ...}}.
local keys = {due = due, morgue = morgue}
local cursor, found = unpack(call('ZSCAN', keys[ARGV[4]], ARGV[5], 'COUNT', ARGV[6]))
local ids = {}
for i = 1, #found, 2 do
  local id = found[i]
  if ARGV[7] == '' or not call('ZSCORE', retry, id) then ids[#ids + 1] = id end
end
return {cursor, #found / 2, ids}
