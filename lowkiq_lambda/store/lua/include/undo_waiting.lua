--! keys due jobs expiries
--! needs records flight known_of_id undo_rows
--! with tracking items mark_items
--! gives keep_waiting what_entries_have
-- The rows of what leaves the waiting list: as carry_waiting.lua has them, of what goes alone. `refs` and `expiries` are {arrival
-- number, value, ...} of what is no longer kept once the payloads are gone.
-- Kinds: 'put', what was deleted waits again; 'raise', what was killed leaves the morgue, and waits again.
local before, KIND = {}, ARGV[4]:sub(29, 32) == 'kill' and 'raise' or 'put'

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

-- `given`: what a started job was handed, where it goes. `again`: another row of the id comes before, nil: if this call has one.
-- `lies`: where they lie in the morgue, if that is elsewhere.
local function keep_waiting(id, entries, given, again, kind, lies)
  if again == nil then again = before[id] ~= nil end
  local row = {id = id, entries = entries, started = given, more = again or nil, lies = lies}
  local all = given and read_handed(given, 1) or entries
  note_what_is_known(row, id, call('HGET', jobs, id), all, 0)
  row.at = call('ZSCORE', due, id) or nil
  -- What a started job leaves behind is due by the time that it has now.
  before[id] = before[id] or row
  for _, name in ipairs({'at', 'since', 'suspect', 'error', 'failures', 'trouble'}) do row[name] = before[id][name] end
  what_entries_have(row, all)
  keep_row(kind or KIND, row)
end
