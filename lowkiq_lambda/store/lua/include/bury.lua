-- The morgue: payloads that have left the order, with the error that was their last, bounded by
-- LIMITS = {entries, bytes, age in seconds}; what a limit removes is counted as trimmed.
local function morgue_members(id, most)
  local from, to = box_range(box_prefix(id))
  return call('ZRANGE', morgue_payloads, from, to, 'BYLEX', 'LIMIT', 0, most)
end

local function forget(id, members)
  if #members > 0 then call('ZREM', morgue_payloads, unpack(members)) end
  local bytes = 0
  for _, member in ipairs(members) do bytes = bytes + #member end
  call('HINCRBY', meta, 'morgue_bytes', -bytes)
  if #morgue_members(id, 1) == 0 then
    call('ZREM', morgue, id)
    call('HDEL', morgue_errors, id)
    if call('HEXISTS', errors, id) == 0 then call('HDEL', failures, id) end
  end
end

local function excess_of(limits)
  local count, bytes = call('ZCARD', morgue_payloads), call('HGET', meta, 'morgue_bytes')
  return count - limits[1], tonumber(bytes or 0) - limits[2]
end

-- The id that was longest left alone goes first: its payloads in their order, no more than the limits ask for.
local function trim_morgue(limits)
  for _ = 1, 100 do
    local oldest = call('ZRANGE', morgue, 0, 0, 'WITHSCORES')
    if #oldest == 0 then return end
    local count, bytes = excess_of(limits)
    local expired, members = tonumber(oldest[2]) < now - limits[3], {}
    for _, member in ipairs(morgue_members(oldest[1], 100)) do
      if not expired and count <= 0 and bytes <= 0 then break end
      members[#members + 1] = member
      count, bytes = count - 1, bytes - #member
    end
    if #members == 0 then return end
    forget(oldest[1], members)
    call('HINCRBY', meta, 'trimmed', #members)
  end
end

local function bury(id, place, payload, error)
  local member = box_prefix(id) .. place .. payload
  if call('ZADD', morgue_payloads, 0, member) == 1 then
    call('HINCRBY', meta, 'morgue_bytes', #member)
  end
  call('ZADD', morgue, now, id)
  call('HSET', morgue_errors, id, error)
end
