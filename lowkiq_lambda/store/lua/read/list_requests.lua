--! keys requests
--! needs shown_requests
-- The requests of the shard, a step of them in no order, read only.
-- ARGV[4]  cursor, '0' at first
-- ARGV[5]  about how many
-- Returns {cursor, '0' at the end, {what shown_requests.lua has of each, ...}}: of an id with both two of them.
if not requests then return {'0', {}} end
local cursor, listed = unpack(call('HSCAN', requests, ARGV[4], 'COUNT', ARGV[5]))
local all = {}
for i = 1, #listed, 2 do
  for _, one in ipairs(shown_requests(listed[i], listed[i + 1])) do all[#all + 1] = one end
end
return {cursor, all}
