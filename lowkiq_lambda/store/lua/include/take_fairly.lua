--! keys due lines lanes
--! needs shard lanes spend
--! gives take_fairly
-- The ids of a claim, in the fair order of their lanes: of each lane that may be served as many as makes it even, then more,
-- from the first lane on, while there is room; of a lane no more than its rate allows. `flying`: {id = true, ...} of
-- what stays in flight, and how many these are. Returns {id, ...}, {time, ...}.
-- To serve a lane takes some 20 µs, and no call may keep the server for 10 ms. The others come first in the next claim.
local MOST_LANES = 300

local function take_fairly(limits, flying, beside)
  local most, rate, ids, times, from, left = limits.ids, limits.tenant_rate, {}, {}, {}, {}
  local rate_ids, rate_seconds = unpack(rate or {})

  local function allowed(lane)
    if not rate then return most end
    if not left[lane] then
      local known = read_lane(lane)
      left[lane] = left_of(known.log or {}, rate_ids, rate_seconds, now)
      if left[lane] < 1 then
        known.rests = free_at(known.log, left[lane], rate_seconds)
        set_served_from(lane, known)
      end
    end
    return left[lane]
  end

  -- From where the last call stopped; `from` says where there may be more.
  local function take_of(lane, wanted)
    local prefix, found = lane_prefix(lane), 0
    local first, last = from[lane] or '[' .. prefix, '(' .. prefix .. time_bytes(due_by) .. '\255'
    local members = call('ZRANGE', lines, first, last, 'BYLEX', 'LIMIT', 0, wanted + beside)
    for _, member in ipairs(members) do
      local id = member:sub(#prefix + 9)
      if found == wanted then break end
      if not flying[id] then
        ids[#ids + 1], times[#times + 1] = id, struct.unpack('>d', member, #prefix + 1)
        found = found + 1
      end
      from[lane] = '(' .. member
    end
    if #members < wanted + beside and found < wanted then from[lane] = nil end
    if rate then left[lane] = left[lane] - found end
    if #members > 0 or first ~= '[' .. prefix then return end
    -- It has no ids any more, and had something to remember.
    set_served_from(lane)
    if call('ZCARD', lines) ~= call('ZCARD', due) then error('DAMAGED lines') end
  end

  local listed = call('ZRANGE', lanes, '-inf', due_by, 'BYSCORE', 'LIMIT', 0, math.min(most, MOST_LANES) + beside)
  for _, share in ipairs({math.max(1, math.floor(most / #listed)), most}) do
    local again = #ids > 0
    for _, lane in ipairs(listed) do
      if #ids == most then break end
      local room = math.min(share, most - #ids, allowed(lane))
      if room > 0 and (from[lane] or not again) then take_of(lane, room) end
    end
    if #ids == 0 then return ids, times end
  end
  return ids, times
end
