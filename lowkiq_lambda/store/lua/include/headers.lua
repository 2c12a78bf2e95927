--! keys headers_even headers_odd
--! needs shard
--! gives MOST_HEADERS MOST_PUSHES write_headers
-- The headers of jobs, which a push hands to the handler: arrival number to how many pushes the entry is
-- of (2 bytes), and of the first MOST of these that have one the length of a header (2 bytes) and the header (msgpack).
-- Two hashes take turns, a day each, and go by themselves a day after theirs: so nothing that is left here stays.
local MOST_HEADERS, DAY, MOST_PUSHES = 8, 86400, 65535

local function write_headers(fields)
  local today = math.floor(now / DAY) % 2 == 0 and headers_even or headers_odd
  local is_new = call('EXISTS', today) == 0
  call('HSET', today, unpack(fields))
  if is_new then call('EXPIRE', today, math.ceil(2 * DAY - now % DAY)) end
end
