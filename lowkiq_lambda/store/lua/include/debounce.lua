--! keys debouncing
--! needs shard debouncing
--! gives quiet_time begin_debouncing put_off forget_debouncing
-- What a push does in a queue that debounces; include/debouncing.lua says what is kept. By the latest time that was seen,
-- as clients' clocks differ by a little.
-- The last of ARGV  for how long an id waits for another push, and how long at most (two doubles)
local MINUTE = 60

local function quiet_and_at_most() return struct.unpack('>dd', ARGV[#ARGV]) end

-- The time of an id whose debouncing begins.
local function quiet_time() return due_by + quiet_and_at_most() end

-- `times`: {time, id, ...} of new ids; those with this time debounce, the others have a time of their own.
-- Here goes what is over, too: an id that is due never waits again for another push.
local function begin_debouncing(times, quiet_text)
  call('ZREMRANGEBYSCORE', debouncing, '-inf', due_by)
  local _, at_most = quiet_and_at_most()
  local latest, given, limits, planned = string.format('%.17g', due_by + at_most), {}, {}, {}
  for i = 1, #times, 2 do
    local id, at = times[i + 1], #given
    if times[i] == quiet_text then
      given[at + 1], given[at + 2], limits[at + 1], limits[at + 2] = quiet_text, id, latest, LATEST .. id
    else
      planned[#planned + 1] = id
    end
  end
  if #planned > 0 then call('ZREM', debouncing, unpack(planned)) end
  if #given == 0 then return end
  call('ZADD', debouncing, unpack(given))
  call('ZADD', debouncing, unpack(limits))
end

-- A push into a waiting id with this time. Returns the time that the caller is to give it, a text; or nil: it does not
-- debounce.
local function put_off(id, due_at)
  local latest = debounced_until(id, due_at)
  if not latest then return nil end
  local quiet, at_most = quiet_and_at_most()
  -- Where the clock was set back, it counts from now.
  latest = math.min(latest, due_by + at_most)
  local at = string.format('%.17g', math.min(latest, due_by + quiet))
  call('ZADD', debouncing, at, id, latest, LATEST .. id)
  return at
end

-- Nothing of it is needed when all of it is over, and no job is lost with it.
local function forget_debouncing()
  local _, at_most = quiet_and_at_most()
  call('PEXPIRE', debouncing, string.format('%.0f', (at_most + MINUTE) * 1000))
end
