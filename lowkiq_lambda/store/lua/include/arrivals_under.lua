--! keys jobs box flight morgue_payloads
--! needs put records started flight flown_arrivals
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
  local kind = record and record:byte(1)
  if kind == SEVERAL or kind == STARTED then
    note_arrivals(found, box, prefix)
    local given = kind == STARTED and started_of(id)
    for _, entry in ipairs(given and read_handed(given, 1) or {}) do found[arrival_of(entry)] = true end
  elseif kind then
    found[arrival_of(read_single(record))] = true
  end
  for _, arrival in ipairs(flown and arrivals_in(flown) or {}) do found[arrival] = true end
  note_arrivals(found, morgue_payloads, prefix)
  return found
end
