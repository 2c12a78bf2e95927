--! keys suspects requests
--! needs requests shard
--! gives end_pauses
-- Ids that are about to be claimed are paused no more. Returns whether any of them is to run alone: then it comes first.
local function end_pauses(ids)
  local any = false
  if call('EXISTS', requests) == 0 then return any end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    local request = packed and cmsgpack.unpack(packed) or {}
    local pause = request.p and request.p.ends <= due_by and request.p
    if pause and pause.suspect then
      call('ZADD', suspects, now, ids[i])
      any = true
    end
    -- A cancel concerns what is in flight, and this is not.
    if pause or request.c then
      request.c = nil
      if pause then request.p = nil end
      write_request(ids[i], request)
    end
  end
  return any
end
