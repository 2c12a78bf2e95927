--! keys due suspects
--! needs shard wait action waited_at_look far
--! with undo undo_rows
--! with requests requests
-- Makes ids that wait for a later time due, in the order given: at times that are not later than now and differ by
-- a tick, so that no lag appears that nobody waited for; or so many in a second. None is due later than before.
-- ARGV[4..9] and what it returns: include/action.lua; [10] when the first is due, [11] seconds between two of them,
--   [12] '1' if what is due now has to make room, [13..] ids. The word of an id that stays, as it is paused, is 'paused';
--   of one that is due by its turn, 'sooner'. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local first_at, step, FEW, turns = tonumber(ARGV[10]), tonumber(ARGV[11]), 500, 0

-- What became due at the last moment keeps its place before them.
local function make_room()
  local at = first_at - step
  local from = string.format('(%.17g', at - FEW * step)
  local near = call('ZRANGE', due, from, now, 'BYSCORE', 'LIMIT', 0, FEW + 1)
  if #near > FEW then return end
  for i, id in ipairs(near) do wait(id, at - (#near - i) * step) end
end

local prepared = ARGV[12] ~= '1'
return act_on_each(13, function(id)
  local due_at, at = call('ZSCORE', due, id), first_at + turns * step
  if has_requests and due_at and requested.pause_of(id) then return false, nil, 'paused' end
  if not due_at or tonumber(due_at) <= now or tonumber(due_at) >= FAR or not waited_at_look(id) then return false end
  turns = turns + 1
  if tonumber(due_at) <= at then return false, nil, 'sooner' end
  if not prepared then make_room() end
  prepared = true
  wait(id, at)
  call('ZADD', suspects, 'XX', at, id)
  if has_undo then undo_log.keep('time', {id = id, at = due_at, due = call('ZSCORE', due, id)}) end
  return true
end)
