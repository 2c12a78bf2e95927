--! keys requests
--! needs requests shard
--! gives is_room_for ask_holder
-- Whether the shard may have this request; it has no more of them than it can tell a holder of.
local MOST_REQUESTS = 10000

local function is_room_for(request) return next(request) ~= nil or call('HLEN', requests) < MOST_REQUESTS end

-- Asks the holder of an id to end what had come of it up to the arrival number `upto`; a request is as old as its first word.
-- Returns 'asked', or 'full'.
local function ask_holder(id, upto, by, error)
  local request = requested.of(id) or {}
  if not is_room_for(request) then return 'full' end
  local before = request.c or {at = now, by = by, upto = 0}
  request.c = {at = before.at, by = before.by, upto = math.max(upto, before.upto), error = error}
  requested.write(id, request)
  return 'asked'
end
