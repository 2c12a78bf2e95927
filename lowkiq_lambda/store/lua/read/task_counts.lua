--! each rows items
--! needs item_rows
-- How many items of a task shards have, by status, read only. Of one shard after the other.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  statuses, a letter each
-- ARGV[6]  how many items that failed are to be listed, of each status and shard, at most
-- ARGV[7]  the statuses of these
-- Returns for each {{count of each status, ...}, how often an ended item has been opened again, items as include/item_rows.lua
--   returns them, those with the highest numbers of their status}.
local task, statuses, most, failures, counts = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], {}
for _ in shards do
  local own, failed = {}, {}
  for status in statuses:gmatch('.') do
    local first, last = '[' .. task .. status, '(' .. task .. string.char(status:byte() + 1)
    own[#own + 1] = call('ZLEXCOUNT', items, first, last)
    if most > 0 and own[#own] > 0 and failures:find(status, 1, true) then
      for _, item in ipairs((listed_items(call('ZRANGE', items, last, first, 'BYLEX', 'REV', 'LIMIT', 0, most)))) do
        failed[#failed + 1] = item
      end
    end
  end
  counts[#counts + 1] = {own, tonumber(call('HGET', rows, 'v' .. task) or 0), failed}
end
return counts
