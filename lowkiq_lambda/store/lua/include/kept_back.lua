--! keys due since lines lanes
--! needs lanes
--! gives kept_back
-- The ids that are due at a moment and wait for more than a drain, as their tenant rests or is paused. Lanes whose time is to
-- come are looked at from both ends, the next ones and those that are paused for ever, and so many at most.
local AT_EACH_END, IN_ORDER = 100, 1000

local function first_of(lane)
  local prefix = lane_prefix(lane)
  local member = call('ZRANGE', lines, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and struct.unpack('>d', member, #prefix + 1) or math.huge
end

local function due_of(lane, moment)
  local prefix = lane_prefix(lane)
  return call('ZLEXCOUNT', lines, '[' .. prefix, '(' .. prefix .. time_bytes(moment) .. '\255')
end

-- 'paused', 'rests', or nil.
local function reason(lane, moment)
  local known = read_lane(lane)
  return (known.paused or 0) > moment and 'paused' or (known.rests or 0) > moment and 'rests' or nil
end

-- Returns the earliest due and the earliest since of ids that wait for a drain alone, and the earliest due of those whose
-- tenant rests, and whose tenant is paused; math.huge if there is none; and how many of the last are due.
local function kept_back(moment)
  local earliest, seen, free, waits, count = {rests = math.huge, paused = math.huge}, {}, math.huge, math.huge, 0
  local after = '(' .. string.format('%.17g', moment)
  for _, range in ipairs({{after, '+inf', 'BYSCORE'}, {'+inf', after, 'BYSCORE', 'REV'}}) do
    range[#range + 1], range[#range + 2], range[#range + 3] = 'LIMIT', 0, AT_EACH_END
    for _, lane in ipairs(call('ZRANGE', lanes, unpack(range))) do
      local why = not seen[lane] and reason(lane, moment)
      if why then earliest[why] = math.min(earliest[why], first_of(lane)) end
      if why == 'paused' then count = count + due_of(lane, moment) end
      seen[lane] = true
    end
  end
  local front = call('ZRANGE', due, 0, 0, 'WITHSCORES')
  if front[1] and not reason(lane_of(front[1]), moment) then
    free = tonumber(front[2])
  elseif front[1] then
    for _, lane in ipairs(call('ZRANGE', lanes, '-inf', moment, 'BYSCORE', 'LIMIT', 0, IN_ORDER)) do
      free = math.min(free, first_of(lane))
    end
  end
  local listed = call('ZRANGE', since, 0, AT_EACH_END - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    local why = reason(lane_of(listed[i]), moment)
    if why then
      earliest[why] = math.min(earliest[why], tonumber(listed[i + 1]))
    else
      waits = tonumber(listed[i + 1])
      break
    end
  end
  return free, waits, earliest.rests, earliest.paused, count
end
