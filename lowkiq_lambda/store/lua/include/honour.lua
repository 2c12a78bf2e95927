--! keys retry groups
--! needs requests records trouble flight retry_counts put_back suspicion forget_errors morgue journal shard
--! with tracking mark_items end_items
--! with headers drop_beside
--! with expiry drop_beside
--! with journalling journalling
--! gives honour honoured_ids killed_by_request
-- Cancels of ids in flight, when their runs end in any way but well, or their holder has died.
local honoured, killed = {}, 0

local function honoured_ids() return honoured end

local function killed_by_request() return killed end

local function drop_cancelled(id, entries)
  for _, entry in ipairs(entries) do enter('cancelled', {id, entry:sub(1, PLACE)}) end
  if has_tracking then finish_items(arrivals_of(entries), 'c') end
  if not (has_headers or has_expiry) then return end
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(9, PLACE) end
  drop_of(arrivals)
end

local function kill_cancelled(merge, id, entries, error, progress)
  if has_tracking then mark_items(arrivals_of(entries), 'x', REASON.KILLED) end
  for _, entry in ipairs(entries) do
    kill(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), error, #entries == 1 and progress or nil, 'killed')
  end
  killed = killed + #entries
end

-- The rest of the id starts anew, as if it had been pushed now.
local function go_on(merge, id, left)
  local t = read_trouble(id)
  -- One that did not fail is not like the rest of its group.
  if t.group and t.group ~= '' then call('HDEL', groups, t.group) end
  drop_suspect(id)
  keep_counts(id, t, false)
  if #left > 0 then put_back(merge, id, t, left, now, -1) end
  if has_journalling and #left > 0 then trace('returned', {id}) end
  if not t.retry_counts and not call('ZSCORE', retry, id) then forget_errors({id}) end
  write_trouble(id, {retry_counts = t.retry_counts})
end

-- Takes the payloads out of the way that the id was handed and that had come when the cancel was asked for. Returns whether
-- there was one; the caller takes the id out of the flight.
local function honour(merge, id, record)
  local request = requested.of(id)
  local cancel = request and request.c
  if not cancel then return false end
  request.c = nil
  requested.write(id, request)
  local _, _, entries, progress = read_flight(record)
  local gone, left = {}, {}
  for _, entry in ipairs(entries) do
    local part = number_of_arrival(entry) <= cancel.upto and gone or left
    part[#part + 1] = entry
  end
  if cancel.error then
    kill_cancelled(merge, id, gone, cancel.error, #left == 0 and progress or nil)
  else
    drop_cancelled(id, gone)
  end
  go_on(merge, id, left)
  honoured[#honoured + 1] = id
  return true
end
