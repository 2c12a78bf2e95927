--! keys headers_even headers_odd expiries flight
--! needs flown_arrivals
--! gives drop_flown drop_of
-- What is done needs no headers and no expiries any more.
local DROPPED_AT_ONCE = 1000

local function drop_of(arrivals)
  for from = 1, #arrivals, DROPPED_AT_ONCE do
    local to = math.min(#arrivals, from + DROPPED_AT_ONCE - 1)
    if has_headers then
      call('HDEL', headers_even, unpack(arrivals, from, to))
      call('HDEL', headers_odd, unpack(arrivals, from, to))
    end
    if has_expiry then call('HDEL', expiries, unpack(arrivals, from, to)) end
  end
end

local function is_any_left()
  return (has_headers and call('EXISTS', headers_even, headers_odd) or 0) + (has_expiry and call('EXISTS', expiries) or 0) > 0
end

-- Of all that is in flight, or of these ids alone.
local function drop_flown(ids)
  if not is_any_left() then return end
  if not ids then return drop_of((arrivals_flown(call('HGETALL', flight)))) end
  local claimed_jobs = {}
  for i, record in ipairs(call('HMGET', flight, unpack(ids))) do
    if record then claimed_jobs[#claimed_jobs + 1], claimed_jobs[#claimed_jobs + 2] = ids[i], record end
  end
  drop_of((arrivals_flown(claimed_jobs)))
end
