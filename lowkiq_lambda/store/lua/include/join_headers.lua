--! keys headers_even headers_odd
--! needs headers
--! gives join_headers
-- Of two equal payloads that became one: the headers of both are those of the one that is kept.

-- How many pushes it is of, and their headers one behind the other. An unreadable value counts as none.
local function read_headers(value)
  if not value or #value < 2 then return 0, '' end
  return struct.unpack('>I2', value), value:sub(3)
end

-- The first MOST_HEADERS of them.
local function first_headers(listed)
  local at = 1
  for _ = 1, MOST_HEADERS do
    if at + 1 > #listed then break end
    at = at + 2 + struct.unpack('>I2', listed, at)
  end
  return listed:sub(1, at - 1)
end

local function join_headers(kept_place, gone_place)
  local kept, gone = kept_place:sub(9), gone_place:sub(9)
  if kept == gone then return end
  local even, odd = call('HMGET', headers_even, kept, gone), call('HMGET', headers_odd, kept, gone)
  local of_kept, of_gone = even[1] or odd[1], even[2] or odd[2]
  if not of_gone then return end
  local stay, stayed = read_headers(of_kept)
  local come, came = read_headers(of_gone)
  call('HDEL', headers_even, kept, gone)
  call('HDEL', headers_odd, kept, gone)
  local pushes = struct.pack('>I2', math.min(stay + come, MOST_PUSHES))
  write_headers({kept, pushes .. first_headers(stayed .. came)})
end
