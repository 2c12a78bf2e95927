--! keys jobs box flight morgue_payloads
--! needs put records payloads started flight flown_arrivals
--! gives arrivals_under
-- The arrival numbers of all payloads of an id, wherever they lie, {arrival = true, ...}.
local function note_arrivals(found, key, prefix)
  local from, to = box_range(prefix)
  for _, member in ipairs(call('ZRANGE', key, from, to, 'BYLEX')) do
    found[member:sub(#prefix + 9, #prefix + PLACE)] = true
  end
end

local function arrivals_under(id)
  local found, prefix = {}, box_prefix(id)
  local record, flown = call('HGET', jobs, id), call('HGET', flight, id)
  if record and is_in_box(record) then
    note_arrivals(found, box, prefix)
    local given = record:byte(1) == STARTED and started_of(id)
    for _, entry in ipairs(given and read_handed(given, 1) or {}) do found[payloads.arrival_of(entry)] = true end
  elseif record then
    for _, entry in ipairs((entries_of(record))) do found[payloads.arrival_of(entry)] = true end
  end
  for _, arrival in ipairs(flown and arrivals_in(flown) or {}) do found[arrival] = true end
  note_arrivals(found, morgue_payloads, prefix)
  return found
end
