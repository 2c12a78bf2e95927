--! keys jobs box retry trouble flight
--! needs records payloads put trouble flight exists started
--! with marks put_latest
--! gives number_of_arrival counts_of note_counts unite put_counted take_counts keep_counts take_count
--! gives counted_in_flight
-- How often payloads have failed. A retry_count is that of the payload which was the oldest of its id when it failed,
-- so that each has equal chances (P7). `retry` keeps the largest of those that wait, and a record in flight that of its
-- oldest payload. Whose it is has to be noted only where it is not that of the oldest which waits: then `retry_counts` among the
-- id's troubles names each payload of the id that has failed, but for the oldest in flight: {arrival number,
-- retry_count, ...}, by arrival.
-- 0, which no payload has, of what was cut off: that fails where it is read, and not here, where more is under way.
local function number_of_arrival(entry)
  return #entry >= PLACE and struct.unpack('>I6', entry, 9) or 0
end

local function oldest_waiting(id)
  local record = call('HGET', jobs, id)
  if not record then return nil end
  if not is_in_box(record) then return number_of_arrival(entries_of(record)[1]) end
  local given = record:byte(1) == STARTED and started_of(id)
  if given then return number_of_arrival(read_handed(given, 1)[1]) end
  local prefix = box_prefix(id)
  local from, to = box_range(prefix)
  local member = call('ZRANGE', box, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and number_of_arrival(member:sub(#prefix + 1))
end

-- {arrival number = retry_count, ...} of an id with these troubles. `waits`: whether anything does.
local function counts_of(id, t, waits)
  local counts = {}
  -- Sums, because a sum fails if a part is not a number.
  for i = 1, t.retry_counts and #t.retry_counts or 0, 2 do counts[t.retry_counts[i] + 0] = t.retry_counts[i + 1] + 0 end
  local count = waits and not t.retry_counts and call('ZSCORE', retry, id)
  local oldest = count and oldest_waiting(id)
  if oldest then counts[oldest] = tonumber(count) end
  return counts
end

-- Into `retry`, and into the troubles, which the caller writes. `in_flight`: arrival numbers of what is in flight.
local function note_counts(id, t, counts, in_flight)
  local largest, known, waits = -1, {}, true
  for arrival, count in pairs(counts) do
    known[#known + 1] = arrival
    if in_flight and in_flight[arrival] then waits = false else largest = math.max(largest, count) end
  end
  t.retry_counts = nil
  if largest >= 0 then call('ZADD', retry, largest, id) else call('ZREM', retry, id) end
  if #known == 0 or (#known == 1 and waits and known[1] == oldest_waiting(id)) then return end
  table.sort(known)
  t.retry_counts = {}
  for i, arrival in ipairs(known) do t.retry_counts[2 * i - 1], t.retry_counts[2 * i] = arrival, counts[arrival] end
end

-- As put, whatever the merge; where one of two payloads is superseded, `kept` is nil.
local function unite(merge, id, place, payload, record)
  if has_marks then return of_latest.put(id, place, payload, record) end
  return put(merge, id, place, payload, record)
end

-- As put does; where it unites two payloads, the one that is kept has the larger count. What is superseded takes its own
-- along. Returns the place that is gone.
local function put_counted(counts, merge, id, entry, record)
  local gone, kept = unite(merge, id, entry:sub(1, PLACE), entry:sub(PLACE + 1), record)
  if not gone then return end
  if not kept then
    counts[number_of_arrival(gone)] = nil
    return gone
  end
  local from, to = number_of_arrival(gone), number_of_arrival(kept)
  if from ~= to and counts[from] then
    counts[to], counts[from] = math.max(counts[from], counts[to] or -1), nil
  end
  return gone
end

-- What is known of payloads in flight that have been the oldest, but are not now, or of those that wait, stays noted.
-- Returns the retry_count of the oldest, the first of these that are claimed.
local function take_counts(id, t, entries)
  local counts, in_flight, oldest = counts_of(id, t), {}, number_of_arrival(entries[1])
  local count = counts[oldest] or -1
  counts[oldest] = nil
  for i = 2, #entries do in_flight[number_of_arrival(entries[i])] = true end
  note_counts(id, t, counts, in_flight)
  write_trouble(id, t)
  return count
end

local function counted_in_flight(id)
  local record, in_flight = call('HGET', flight, id), {}
  if not record then return in_flight end
  local _, _, entries = read_flight(record)
  for _, entry in ipairs(entries) do in_flight[number_of_arrival(entry)] = true end
  return in_flight
end

-- Only what waits, or only what is in flight, has failed from now on; the caller writes the troubles.
local function keep_counts(id, t, of_flight)
  if not t.retry_counts then return end
  local counts, in_flight = counts_of(id, t), counted_in_flight(id)
  for arrival in pairs(counts) do
    if (in_flight[arrival] or false) ~= of_flight then counts[arrival] = nil end
  end
  note_counts(id, t, counts, in_flight)
end

local troubled

-- The retry_count with which the only payload of an id that has failed is claimed.
local function take_count(id, count, entry)
  if troubled == nil then troubled = exists(trouble) end
  local t = troubled and read_trouble(id) or {}
  if t.retry_counts then return take_counts(id, t, {entry}) end
  call('ZREM', retry, id)
  return count
end
