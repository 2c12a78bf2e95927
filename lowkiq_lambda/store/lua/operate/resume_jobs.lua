--! keys due suspects flight
--! needs shard action requests wait
-- Ends the pauses of ids: they are due when they would have been, or now.
-- ARGV[4..9] and what it returns: include/action.lua; [10..] ids. The word of an id: 'done', or 'gone' where it was not paused.
--   Or a refusal.
local refused = refusal(ARGV[5])
if refused then return refused end

return act_on_each(10, function(id)
  local request = requested.of(id) or {}
  local pause = request.p
  if not pause then return false, nil, 'gone' end
  request.p = nil
  requested.write(id, request)
  if call('ZSCORE', due, id) then
    -- No lag appears that nobody waited for.
    local at = math.max(now, pause.due or now)
    wait(id, at)
    if pause.suspect and call('HEXISTS', flight, id) == 0 then call('ZADD', suspects, at, id) end
  end
  return true, nil, 'done'
end)
