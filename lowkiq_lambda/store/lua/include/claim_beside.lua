--! keys due since retry errors trouble suspects flight meta lanes
--! needs exists shard claim claim_reply
--! with tenants take_fairly serve next_served
--! with tracking flown_items
--! with headers claim_entries
--! with expiry claim_entries
--! with journalling trace_claim
--! with requests requests
--! gives next_beside claim_beside
-- Claiming beside what is in flight: what is due and not there yet. Suspects run with nothing beside them, so nothing is
-- claimed while there are any, or while what is in flight was claimed as some.
local function may_claim_beside()
  return call('HGET', meta, 'claim_kind') == 'DUE' and not exists(suspects)
end

-- The first ids that are due and not in flight, {id, ...}, {time, ...}; when the next other one is due, or ''; and
-- whether they are the first of due.
local function due_beside(limit)
  local flying, is_flying, ids, times, first = call('HKEYS', flight), {}, {}, {}, true
  for _, id in ipairs(flying) do is_flying[id] = true end
  if lanes then
    ids, times = take_fairly({ids = limit}, is_flying, #flying)
    return ids, times, next_served(is_flying, #flying), false
  end
  local listed = call('ZRANGE', due, 0, limit + #flying, 'WITHSCORES')
  for i = 1, #listed, 2 do
    local id, at = listed[i], listed[i + 1]
    if is_flying[id] then
      first = false
    elseif #ids >= limit or tonumber(at) > due_by then
      return ids, times, at, first
    else
      ids[#ids + 1], times[#times + 1] = id, at
    end
  end
  return ids, times, '', first
end

-- When an id could be claimed so, or ''.
local function next_beside()
  if not may_claim_beside() then return '' end
  local _, _, other = due_beside(0)
  return other
end

-- `left_since`: the oldest due_at of what is in flight, or ''. Returns what claim returns, with what is new in flight,
-- or nil; and what next_beside returns.
local function claim_beside(merge, limits, left_since)
  if left_since ~= '' then call('HSET', meta, 'flight_since', left_since) end
  if limits.ids < 1 or not may_claim_beside() then return nil, next_beside() end
  local plain = call('EXISTS', since, retry, errors, trouble) == 0
  local ids, times, other, first = due_beside(limits.ids)
  if #ids == 0 then return nil, other end
  if has_requests and requested.end_pauses(ids) then return nil, '' end
  local claimed_jobs, oldest = take(merge, ids, times, limits, first, plain)
  if not claimed_jobs then return nil, times[1] end
  call('HSET', meta, 'flight_since', math.min(oldest, tonumber(left_since) or oldest))
  if lanes then serve(claimed_jobs) end
  if has_journalling then trace_claim(claimed_jobs) end
  local tracked = has_tracking and mark_flown(claimed_jobs) or nil
  local reply = plain and {'DUE', claimed_jobs, {}, {}, '', tracked} or claim_reply('DUE', claimed_jobs, '', tracked)
  if has_headers or has_expiry then with_what_entries_have(reply) end
  if lanes then return reply, next_beside() end
  return reply, times[#claimed_jobs / 2 + 1] or other
end
