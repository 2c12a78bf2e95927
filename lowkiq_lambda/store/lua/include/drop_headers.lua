--! keys headers_even headers_odd flight
--! needs flown_arrivals
-- What is done needs no headers any more.
local DROPPED_AT_ONCE = 1000

local function drop_headers_at(arrivals)
  for from = 1, #arrivals, DROPPED_AT_ONCE do
    local to = math.min(#arrivals, from + DROPPED_AT_ONCE - 1)
    call('HDEL', headers_even, unpack(arrivals, from, to))
    call('HDEL', headers_odd, unpack(arrivals, from, to))
  end
end

local function drop_headers(window) drop_headers_at((arrivals_flown(window))) end

local function drop_headers_of(entries)
  if call('EXISTS', headers_even, headers_odd) == 0 then return end
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(9, 14) end
  drop_headers_at(arrivals)
end

-- Of all that is in flight, or of these ids alone.
local function drop_flown_headers(ids)
  if call('EXISTS', headers_even, headers_odd) == 0 then return end
  if not ids then return drop_headers(call('HGETALL', flight)) end
  local window = {}
  for i, record in ipairs(call('HMGET', flight, unpack(ids))) do
    if record then window[#window + 1], window[#window + 2] = ids[i], record end
  end
  drop_headers(window)
end
