--! keys jobs box flight
--! needs comes_before put records payloads started flight
--! gives newest_place
-- The place of the newest payload that waits under an id, or is in flight; nil if there is none.
local function newest_place(id)
  local newest
  local function note(place)
    if not newest or comes_before(newest, place) then newest = place end
  end
  local record, flown = call('HGET', jobs, id), call('HGET', flight, id)
  if record and is_in_box(record) then
    local prefix = box_prefix(id)
    local from, to = box_range(prefix)
    local last = call('ZREVRANGEBYLEX', box, to, from, 'LIMIT', 0, 1)[1]
    if last then note(last:sub(#prefix + 1, #prefix + PLACE)) end
    local given = record:byte(1) == STARTED and started_of(id)
    for _, entry in ipairs(given and read_handed(given, 1) or {}) do note(entry:sub(1, PLACE)) end
  elseif record then
    local entries = entries_of(record)
    note(entries[#entries]:sub(1, PLACE))
  end
  if flown then
    local _, _, entries = read_flight(flown)
    for _, entry in ipairs(entries) do note(entry:sub(1, PLACE)) end
  end
  return newest
end
