--! keys flight expiries meta
--! needs shard action withdraw morgue journal request_room
--! with tracking mark_items end_items
-- Stops ids for good: what waits under them goes, to the morgue if there is an error; of what is in flight the holder is asked
-- to end it (include/honour.lua).
-- ARGV[4..9] and what it returns: include/action.lua; [10..12] morgue limits: entries, bytes, age, [13] the error, or '', [14]
--   the operator's name, [15..] ids. The word of an id: 'done', 'asked', 'gone', where it has no payload there, or 'full', where
--   the shard has as many requests as it may have. Or a refusal.
local reply = refusal(ARGV[5])
if reply then return reply end
-- One name: scripts have few left.
local cancel = {error = ARGV[13] ~= '' and ARGV[13] or nil, by = ARGV[14], dead = 0, ids = 0}

local function take(id, place, payload, progress)
  if cancel.error then
    if has_tracking then mark_items(arrivals_of({place}), 'x', REASON.KILLED) end
    kill(merge, id, place, payload, cancel.error, progress, 'killed')
    cancel.dead = cancel.dead + 1
    return
  end
  enter('cancelled', {id, place})
  if has_tracking then finish_items(arrivals_of({place}), 'c') end
  if has_expiry then call('HDEL', expiries, place:sub(9)) end
end

reply = act_on_each(15, function(id, after, again)
  local changed, more = withdraw(id, after, again, false, take)
  if more then return changed, more end
  if call('HEXISTS', flight, id) == 1 then return changed, nil, ask_holder(id, looked, cancel.by, cancel.error) end
  if not (changed or again) then return false, nil, 'gone' end
  cancel.ids = cancel.ids + 1
  return changed, nil, 'done'
end)
if cancel.ids > 0 then call('HINCRBY', meta, 'cancelled', cancel.ids) end
trim_morgue(10, cancel.dead)
write_journal(token)
return reply
