--! keys requests
--! gives is_room_for
-- Whether the shard may have this request; it has no more of them than it can tell a holder of.
local MOST_REQUESTS = 10000

local function is_room_for(request) return next(request) ~= nil or call('HLEN', requests) < MOST_REQUESTS end
