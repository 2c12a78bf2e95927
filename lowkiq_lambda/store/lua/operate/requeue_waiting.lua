--! keys due since suspects
--! needs shard wait action waited_at_look
-- Lets ids that are due wait again, in the order given, so many in a second.
-- ARGV[4..9] and what it returns: include/action.lua; [10] time of the look: an id that is due later stays, [11] when the
--   first of the ids is due, [12] seconds between two of them, [13..] ids. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local looked_at, first_at, step, requeued = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), 0

return act_on_each(13, function(id)
  local due_at = call('ZSCORE', due, id)
  if not due_at or tonumber(due_at) > looked_at or not waited_at_look(id) then return false end
  local at = first_at + requeued * step
  requeued = requeued + 1
  wait(id, at)
  call('ZADD', suspects, 'XX', at, id)
  call('ZREM', since, id)
  return true
end)
