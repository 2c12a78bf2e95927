--! keys flight
--! gives shown_requests
-- The requests of operators for an id, for people: {{id, 'c' or 'p', time, name of the operator, the end of a pause or '', '1' where
-- the id is in flight, else ''}, ...}. `packed`: as it is kept, or false.
local function shown_requests(id, packed)
  local request, shown = packed and cmsgpack.unpack(packed) or {}, {}
  local is_in_flight = call('HEXISTS', flight, id) == 1 and '1' or ''
  for _, kind in ipairs({'c', 'p'}) do
    local one = request[kind]
    if one then
      local ends = one.ends and string.format('%.17g', one.ends) or ''
      shown[#shown + 1] = {id, kind, string.format('%.17g', one.at), one.by, ends, is_in_flight}
    end
  end
  return shown
end
