--! keys flight
--! needs records trouble flight retry_counts
--! with headers drop_beside
--! with expiry drop_beside
--! gives take_out
-- Takes payloads out of the record in flight of an id that stays with the others, for the outcome that follows. `is_gone`:
-- {[arrival number] = {error = what the morgue keeps it with, or nothing}, ...}. By their numbers and not by positions: a call that fails behind this is made again once
-- the shard is repaired, and must take out nothing else. Headers go with a payload, but not to the morgue: there it has them. So do expiries. The count of the id is from now on that of the oldest left (P7).
-- Progress goes, as it is true of all that the id was handed. Returns what has left, {entry, ...}; nothing leaves if nothing
-- would be left.
local function take_out(id, record, is_gone)
  local due_at, retry_count, entries = read_flight(record)
  local gone, left, arrivals, t = {}, {}, {}, read_trouble(id)
  for _, entry in ipairs(entries) do
    local is_out = is_gone[number_of_arrival(entry)]
    local part = is_out and gone or left
    part[#part + 1] = entry
    if is_out and not is_out.error then arrivals[#arrivals + 1] = entry:sub(9, PLACE) end
  end
  if #gone == 0 or #left == 0 then return {} end
  local count = -1
  if t.retry_counts then
    local kept = {}
    for i = 1, #t.retry_counts, 2 do
      if not is_gone[t.retry_counts[i]] then kept[#kept + 1], kept[#kept + 2] = t.retry_counts[i], t.retry_counts[i + 1] end
    end
    t.retry_counts = kept
    count = take_counts(id, t, left)
  end
  if gone[1] == entries[1] then retry_count = count end
  call('HSET', flight, id, flight_record(due_at, retry_count, left))
  if has_headers or has_expiry then drop_of(arrivals) end
  return gone
end
