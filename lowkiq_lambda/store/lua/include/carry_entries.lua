--! keys refs rows headers_even headers_odd expiries
--! needs cargo records
--! with tracking items
--! gives found_at add_what_entries_have
-- What goes with payloads beside themselves, by their arrival numbers: `refs`, {arrival number, refs, ...}, and `rows`,
-- {ref, row, ...}, of the items of tasks; `headers`, {arrival number, headers, ...}; `expiries`, {arrival number, time, ...}.
local PART = 1000

-- {arrival number, value, ...} of those that have one.
local function found_at(arrivals, ...)
  local found
  for from = 1, #arrivals, PART do
    local part = {unpack(arrivals, from, math.min(#arrivals, from + PART - 1))}
    local kept = {}
    for _, key in ipairs({...}) do
      for i, value in ipairs(call('HMGET', key, unpack(part))) do kept[i] = kept[i] or value end
    end
    for i, arrival in ipairs(part) do
      if kept[i] then
        found = found or {}
        found[#found + 1], found[#found + 2] = moved_arrival(arrival), kept[i]
      end
    end
  end
  return found
end

local function rows_of(found)
  local of, kept = {}, {}
  for i = 2, #found, 2 do
    for _, ref in ipairs(each_ref(found[i])) do of[#of + 1] = ref end
  end
  in_parts(of, function(some)
    for i, packed in ipairs(call('HMGET', rows, unpack(some))) do
      if packed then kept[#kept + 1], kept[#kept + 2] = some[i], packed end
    end
  end)
  return kept
end

local function add_what_entries_have(row, entries)
  local is_of_tasks = has_tracking and is_tracked()
  local is_of_headers = has_headers and call('EXISTS', headers_even, headers_odd) > 0
  if not (is_of_tasks or is_of_headers or has_expiry) then return end
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(PLACE - 5, PLACE) end
  if is_of_tasks then
    row.refs = found_at(arrivals, refs)
    row.rows = row.refs and rows_of(row.refs)
  end
  if has_headers then row.headers = found_at(arrivals, headers_even, headers_odd) end
  if has_expiry then row.expiries = found_at(arrivals, expiries) end
end
