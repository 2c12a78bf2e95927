--! keys requests flight
-- The requests of the shard, a step of them in no order, read only.
-- ARGV[4]  cursor, '0' at first
-- ARGV[5]  about how many
-- Returns {cursor, '0' at the end, {{id, 'c' or 'p', when it was made, by whom, the end of a pause or '', '1' where the id is in
--   flight, else ''}, ...}}: of an id with both two of them.
if not requests then return {'0', {}} end
local cursor, listed = unpack(call('HSCAN', requests, ARGV[4], 'COUNT', ARGV[5]))
local shown = {}
for i = 1, #listed, 2 do
  local id, request = listed[i], cmsgpack.unpack(listed[i + 1])
  local is_in_flight = call('HEXISTS', flight, id) == 1 and '1' or ''
  for _, kind in ipairs({'c', 'p'}) do
    local one = request[kind]
    if one then
      local ends = one.ends and string.format('%.17g', one.ends) or ''
      shown[#shown + 1] = {id, kind, string.format('%.17g', one.at), one.by, ends, is_in_flight}
    end
  end
end
return {cursor, shown}
