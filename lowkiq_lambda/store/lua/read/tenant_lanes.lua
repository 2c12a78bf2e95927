--! keys lines lanes
--! needs lanes
-- Lanes of tenants, those whose turn comes first, read only.
-- ARGV[4]     how many
-- ARGV[5..6]  a tenant and '1', to read of that one alone
-- Returns {how many lanes there are, {{tenant, its turn, ids that wait, its first perform_in or '', what `served` notes
--   of it}, ...}}.
local listed = {ARGV[5], ARGV[6] and call('ZSCORE', lanes, ARGV[5])}
if not ARGV[6] then listed = call('ZRANGE', lanes, 0, ARGV[4] - 1, 'WITHSCORES') end
local found = {}
for i = 1, listed[2] and #listed or 0, 2 do
  local prefix = lane_prefix(listed[i])
  local from, to = '[' .. prefix, '(' .. prefix .. '\255'
  local first = call('ZRANGE', lines, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
  found[#found + 1] = {
    listed[i], listed[i + 1], call('ZLEXCOUNT', lines, from, to),
    first and string.format('%.17g', (struct.unpack('>d', first, #prefix + 1))) or '', cmsgpack.pack(read_lane(listed[i])),
  }
end
return {call('ZCARD', lanes), found}
