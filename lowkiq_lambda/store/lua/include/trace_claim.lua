--! needs records journalling
--! gives trace_claim
-- What a claim delivered: id, first and last place, how many payloads, and 1 if they are those of a started job. Payloads
-- are not copied, as in flown_arrivals.lua.
local BEHIND_TIMES = 17

local function delivered(record)
  local at, started = BEHIND_TIMES, 0
  if record:byte(at) == STARTED then at, started = at + 5 + struct.unpack('>I4', record, at + 1), 1 end
  if record:byte(at) ~= SEVERAL then
    local place = record:sub(at + 1, at + PLACE)
    return place, place, 1, started
  end
  local first, last, count = nil, nil, 0
  at = at + 1
  while at + 3 < #record do
    last, count = record:sub(at + 4, at + 3 + PLACE), count + 1
    first, at = first or last, at + 4 + struct.unpack('>I4', record, at)
  end
  return first, last, count, started
end

local function trace_claim(claimed_jobs)
  if not is_traced() then return end
  for i = 1, #claimed_jobs, 2 do trace('claimed', {claimed_jobs[i], delivered(claimed_jobs[i + 1])}) end
end
