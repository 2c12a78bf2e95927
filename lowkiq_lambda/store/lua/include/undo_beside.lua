--! keys expiries
--! needs records
--! with tracking items mark_items
--! gives what_entries_have
-- Of a row of undo: what is no longer kept once its payloads are gone.
local function what_entries_have(row, entries)
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(PLACE - 5, PLACE) end
  local function keep_in(name, arrival, value)
    if not value then return end
    local kept = row[name] or {}
    kept[#kept + 1], kept[#kept + 2], row[name] = arrival, value, kept
  end
  if has_tracking and is_tracked() then
    for i, kept in ipairs(refs_at(arrivals)) do keep_in('refs', arrivals[i], kept) end
  end
  if not has_expiry then return end
  for _, arrival in ipairs(arrivals) do keep_in('expiries', arrival, call('HGET', expiries, arrival)) end
end
