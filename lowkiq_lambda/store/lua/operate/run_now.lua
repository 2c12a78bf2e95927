--! keys due suspects
--! needs shard wait action waited_at_look far
--! with undo undo_rows
--! with requests requests
-- Makes ids that wait for a later time due, in the order given, at times that are not later than now and differ by
-- a tick, so that no lag appears that nobody waited for.
-- ARGV[4..9] and what it returns: include/action.lua; [10] the time after which the first is due, [11] the tick,
--   [12] '1' if these are the first of the shard, [13..] ids. The word of an id that stays, as it is paused, is 'paused'. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local at, tick, FEW = tonumber(ARGV[10]), tonumber(ARGV[11]), 500

-- What became due at the last moment keeps its place before them.
local function make_room()
  local from = string.format('(%.17g', at - FEW * tick)
  local near = call('ZRANGE', due, from, now, 'BYSCORE', 'LIMIT', 0, FEW + 1)
  if #near > FEW then return end
  for i, id in ipairs(near) do wait(id, at - (#near - i) * tick) end
end

local prepared = ARGV[12] ~= '1'
return act_on_each(13, function(id)
  local due_at = call('ZSCORE', due, id)
  if has_requests and due_at and requested.pause_of(id) then return false, nil, 'paused' end
  if not due_at or tonumber(due_at) <= now or tonumber(due_at) >= FAR or not waited_at_look(id) then return false end
  if not prepared then make_room() end
  prepared = true
  at = at + tick
  wait(id, at)
  call('ZADD', suspects, 'XX', at, id)
  if has_undo then undo_log.keep('time', {id = id, at = due_at, due = call('ZSCORE', due, id)}) end
  return true
end)
