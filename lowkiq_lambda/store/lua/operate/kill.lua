--! keys errors
--! needs shard action texts withdraw bury journal
--! with tracking mark_items
-- Sends what waits under ids that have failed to the morgue, with their last error.
-- ARGV[4..9] and what it returns: include/action.lua; [10..12] morgue limits: entries, bytes, age, [13..] ids.
--   What remains of an id starts anew. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local morgue_limits = {tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])}
local buried = 0
local reply = act_on_each(13, function(id, after, again)
  local error = error_of(errors, id) or ''
  return withdraw(id, after, again, true, function(_, place, payload, progress)
    if has_tracking then mark_items(arrivals_of({place}), 'x', KILLED) end
    bury(id, place, payload, error, progress)
    enter('killed', {id, place})
    buried = buried + 1
  end)
end)
trim_morgue(morgue_limits, buried)
write_journal(token)
return reply
