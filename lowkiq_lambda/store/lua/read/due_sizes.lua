--! keys due jobs box
--! needs payloads put
-- How many payloads wait under ids that are due, read only: of the first of those that are due.
-- ARGV[4]  Unix seconds, as the caller judges the server's time
-- ARGV[5]  how many ids at most
-- Returns {{id, payloads, ...}}.
local sizes = {}
local ids = call('ZRANGE', due, '-inf', ARGV[4], 'BYSCORE', 'LIMIT', 0, ARGV[5])
for i, record in ipairs(#ids > 0 and call('HMGET', jobs, unpack(ids)) or {}) do
  local count = 1
  if record and is_in_box(record) then
    count = math.max(1, call('ZLEXCOUNT', box, box_range(box_prefix(ids[i]))))
  elseif record then
    local _, several = payloads.layout(record)
    count = several
  end
  sizes[#sizes + 1], sizes[#sizes + 2] = ids[i], count
end
return {sizes}
