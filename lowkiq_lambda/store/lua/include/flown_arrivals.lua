--! gives arrivals_in arrivals_flown
-- Which entries records in flight have (flight.lua). Payloads are not copied: a claim may have megabytes of them.
local HEAD, STARTED_HEAD = 17, 5

local function arrivals_in(record)
  local at = HEAD
  if record:sub(at, at) == 'p' then at = at + STARTED_HEAD + struct.unpack('>I4', record, at + 1) end
  if record:sub(at, at) == 's' then return {record:sub(at + 9, at + 14)} end
  local arrivals = {}
  at = at + 1
  while at + 3 < #record do
    arrivals[#arrivals + 1] = record:sub(at + 12, at + 17)
    at = at + 4 + struct.unpack('>I4', record, at)
  end
  return arrivals
end

-- Of {id, record, ...}: the arrival numbers, and whose each is.
local function arrivals_flown(claimed_jobs)
  local arrivals, whose = {}, {}
  for i = 1, #claimed_jobs, 2 do
    for _, arrival in ipairs(arrivals_in(claimed_jobs[i + 1])) do
      arrivals[#arrivals + 1], whose[#whose + 1] = arrival, claimed_jobs[i]
    end
  end
  return arrivals, whose
end
