--! keys duties
--! gives server_now state_of
-- The fields of one duty in the hash of an app's duties. A text that is not a number counts as absent: the duty is due.
-- Fields, each after the duty's name and a colon: by (nonce of the last claim), until (its end, while the run is not
-- known to be over), began, ended, failed (runs in a row), unfinished (so too), error, next (when its last run asked for
-- another, sooner than in a period).
local server_now = tonumber(ARGV[2])

-- Seconds: a duty that fails rests no longer than this, or than its period.
local LONGEST = 900
-- Of a period: how much earlier a duty may begin, so that ticks that do not come at the same second miss none.
local EARLY = 0.1
-- Seconds: the longest claim, and one more. A claim that began later was made by a clock that was ahead. One that began
-- within them may be of a call that overtook this one.
local CLOCKS_DIFFER = 66

local function doubled(seconds, times, longest) return math.min(longest, seconds * 2 ^ math.min(times, 16)) end

-- What a text says, where it is a number.
local function number(text)
  local value = tonumber(text)
  return value and value - value == 0 and value or nil
end

-- When it is due, whether a claim lasts, how many seconds earlier it may begin, and what was read, as listed above. `rest`, where it is
-- not its period: for how many seconds it rests first, where it may be the duty that ends its process, and then for no
-- longer than its period.
local function state_of(name, every, rest)
  local names = {}
  for i, field in ipairs({'by', 'until', 'began', 'ended', 'failed', 'unfinished', 'error', 'next'}) do
    names[i] = name .. ':' .. field
  end
  local read = call('HMGET', duties, unpack(names))
  local held_until, began = number(read[2]), number(read[3])
  -- A time to come was written when the server's clock was ahead: nothing goes by it.
  if not began or began > server_now + CLOCKS_DIFFER then return server_now, false, 0, read end
  if held_until and server_now < held_until then return held_until, true, 0, read end
  if held_until then
    -- The run is not known to be over. The second time in a row the duty itself may have ended its process.
    local times = number(read[6]) or 1
    local longest = rest and every or math.max(every, LONGEST)
    return held_until + (times > 1 and doubled(rest or every, times - 2, longest) or 0), false, EARLY * (rest or every), read
  end
  local failed = number(read[5]) or 0
  local due_at, asked_for = began + (failed > 1 and doubled(every, failed - 1, math.max(every, LONGEST)) or every), number(read[8])
  if asked_for and asked_for < due_at then return asked_for, false, 0, read end
  return due_at, false, EARLY * every, read
end
