--! keys headers_even headers_odd flight
--! needs flown_arrivals
--! gives drop_flown_headers drop_headers_of
-- What is done needs no headers any more.
local DROPPED_AT_ONCE = 1000

local function drop_headers_of(arrivals)
  for from = 1, #arrivals, DROPPED_AT_ONCE do
    local to = math.min(#arrivals, from + DROPPED_AT_ONCE - 1)
    call('HDEL', headers_even, unpack(arrivals, from, to))
    call('HDEL', headers_odd, unpack(arrivals, from, to))
  end
end

local function drop_headers(claimed_jobs) return drop_headers_of((arrivals_flown(claimed_jobs))) end

-- Of all that is in flight, or of these ids alone.
local function drop_flown_headers(ids)
  if call('EXISTS', headers_even, headers_odd) == 0 then return end
  if not ids then return drop_headers(call('HGETALL', flight)) end
  local claimed_jobs = {}
  for i, record in ipairs(call('HMGET', flight, unpack(ids))) do
    if record then claimed_jobs[#claimed_jobs + 1], claimed_jobs[#claimed_jobs + 2] = ids[i], record end
  end
  drop_headers(claimed_jobs)
end
