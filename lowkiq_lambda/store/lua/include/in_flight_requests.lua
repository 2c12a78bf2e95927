--! keys flight requests
--! gives in_flight_requests
-- {id, what is wanted of it, ...} of what is in flight, as its holder is told it: 'c' or 'p'; nil if there is nothing.
local function in_flight_requests()
  if call('EXISTS', requests) == 0 then return nil end
  local ids, wanted = call('HKEYS', flight), {}
  if #ids == 0 then return nil end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    if packed then wanted[#wanted + 1], wanted[#wanted + 2] = ids[i], cmsgpack.unpack(packed).c and 'c' or 'p' end
  end
  return #wanted > 0 and wanted or nil
end
