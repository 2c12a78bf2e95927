--! keys meta
--! needs in_flight_requests
--! gives add_requests
-- What a holder is told of requests with the reply to its call `n`, which has two parts before them. `cancelled`: the ids that
-- the call has cancelled; nil for a repeat, as these were noted.
local function add_requests(reply, n, cancelled)
  local wanted = in_flight_requests()
  if not cancelled then
    local noted = call('HGET', meta, 'cancelled_by')
    noted = noted and cmsgpack.unpack(noted)
    cancelled = noted and noted[1] == n and noted[2] or {}
  elseif #cancelled > 0 then
    call('HSET', meta, 'cancelled_by', cmsgpack.pack({n, cancelled}))
  end
  if not wanted and #cancelled == 0 then return end
  reply[5], reply[6], reply[7], reply[8] = reply[5] or {}, reply[6] or 0, wanted or {}, cancelled
end
