--! keys due errors
--! needs shard action texts withdraw morgue far journal
--! with tracking mark_items
-- Sends what waits under ids to the morgue.
-- ARGV[4..9] and what it returns: include/action.lua; [10..12] morgue limits: entries, bytes, age, [13] 'failed' for ids that
--   have failed, with their last error, or 'later' for those that are not due yet, with [14] the error. [15..] ids. What
--   remains of an id starts anew. Or a refusal.
local reply = refusal(ARGV[5])
if reply then return reply end
local dead = 0
reply = act_on_each(15, function(id, after, again)
  local of_failed, at = ARGV[13] == 'failed', tonumber(call('ZSCORE', due, id) or now)
  -- A blocked id does not wait for a time, but until an operator unblocks it.
  if not of_failed and (at <= now or at >= FAR) then return false end
  local error = of_failed and (error_of(errors, id) or '') or ARGV[14]
  return withdraw(id, after, again, of_failed, function(_, place, payload, progress)
    if has_tracking then mark_items(arrivals_of({place}), 'x', REASON.KILLED) end
    kill(merge, id, place, payload, error, progress, 'killed')
    dead = dead + 1
  end)
end)
trim_morgue(10, dead)
write_journal(token)
return reply
