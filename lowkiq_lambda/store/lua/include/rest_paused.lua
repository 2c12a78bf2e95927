--! keys due since suspects flight
--! needs requests wait suspicion
--! gives rest_paused
-- Holds back a paused id that waits: neither a claim of due ids finds it, nor one of suspects, which go first
-- whenever they are due. In flight a suspect stays one until it is settled.
local function rest_paused(id)
  local request, due_at = requested.pause_of(id), call('ZSCORE', due, id)
  if not (request and due_at) then return false end
  if call('HEXISTS', flight, id) == 0 and call('ZSCORE', suspects, id) then
    drop_suspect(id)
    request.p.suspect = true
    requested.write(id, request)
  end
  local own = call('ZSCORE', since, id) or due_at
  call('ZREM', since, id)
  wait(id, own)
  return true
end
