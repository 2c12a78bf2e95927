--! keys flight
--! needs shard action requests request_room rest_paused
-- Pauses ids, each by itself: payloads that wait under them, or will, are due no sooner than the end of the pause. Those in
-- flight are put back then if they do not end well. The later end wins.
-- ARGV[4..9] and what it returns: include/action.lua; [10] the end, [11] the operator's name, [12..] ids. The word of an id: 'done',
--   'asked', where it is in flight, 'gone', where it has nothing yet, or 'full', as in cancel.lua. Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end
local ends, by = tonumber(ARGV[10]), ARGV[11]

return act_on_each(12, function(id)
  local request = requested.of(id) or {}
  if not is_room_for(request) then return false, nil, 'full' end
  local before = request.p or {ends = 0}
  request.p = {at = now, by = by, ends = math.max(ends, before.ends), due = before.due, suspect = before.suspect}
  requested.write(id, request)
  local waits = rest_paused(id)
  if call('HEXISTS', flight, id) == 1 then return true, nil, 'asked' end
  return true, nil, waits and 'done' or 'gone'
end)
