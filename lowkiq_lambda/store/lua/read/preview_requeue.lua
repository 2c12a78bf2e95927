--! keys due morgue_payloads
--! needs put newest_place far comes_before
--! with marks marks
-- What requeue.lua would do to ids, read only.
-- ARGV[4]  the order, as there
-- ARGV[5]  when the first of the ids is due
-- ARGV[6]  seconds between two of them
-- ARGV[7..]  ids
-- Returns {{payloads that would wait, payloads that would stay dead, when the id would be due or '', ids of the shard
--   that wait for an earlier time, 1 if it waits already, else 0}, ...}.
local order, first_at, step = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local found, requeued_ids = {}, 0

local function preview(id)
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local dead, stay = call('ZLEXCOUNT', morgue_payloads, from, to), 0
  local newest, mark = (order == 'unless_newer' or has_marks) and newest_place(id), has_marks and marks_of({id})[1]
  if mark and (not newest or comes_before(newest, mark)) then newest = mark end
  if newest then stay = call('ZLEXCOUNT', morgue_payloads, from, '(' .. prefix .. newest) end
  if has_marks then stay = math.max(stay, dead - 1) end
  if stay == dead then return {0, stay, '', 0, 0} end
  local at, waits_at = first_at + requeued_ids * step, call('ZSCORE', due, id)
  requeued_ids = requeued_ids + 1
  if waits_at and tonumber(waits_at) >= FAR then return {dead - stay, stay, '', 0, 1} end
  if waits_at then at = math.min(at, tonumber(waits_at)) end
  local text = string.format('%.17g', at)
  return {dead - stay, stay, text, call('ZCOUNT', due, '-inf', '(' .. text), waits_at and 1 or 0}
end

for i = 7, #ARGV do found[#found + 1] = preview(ARGV[i]) end
return {found}
