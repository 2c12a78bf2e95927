--! gives left_of free_at spend
-- At most `limit` in any `per` seconds. A log is {time, count, ...}, oldest first. Its times are the latest moments at which
-- what was granted may begin, so it forgets nothing too early. Grants whose times lie in the same part of `per` are one
-- chunk, at the latest of these times, so a log stays short and errs to fewer only.
local PARTS = 32

-- How many may begin at this moment; what is older than `per` leaves the log.
local function left_of(log, limit, per, moment)
  while log[1] and log[1] <= moment - per do
    table.remove(log, 1)
    table.remove(log, 1)
  end
  local left = limit
  for i = 2, #log, 2 do left = left - log[i] end
  return left
end

-- When the next may begin, if none may now.
local function free_at(log, left, per)
  for i = 2, #log, 2 do
    left = left + log[i]
    if left >= 1 then return log[i - 1] + per end
  end
  return 0
end

-- Notes that so many are granted, to begin until `latest`; returns the time under which they stand.
local function spend(log, per, latest, count)
  local newest, part = #log - 1, per / PARTS
  if newest > 0 and (latest <= log[newest] or math.floor(latest / part) == math.floor(log[newest] / part)) then
    log[newest], log[newest + 1] = math.max(latest, log[newest]), log[newest + 1] + count
    return log[newest]
  end
  log[#log + 1] = latest
  log[#log + 1] = count
  return latest
end
