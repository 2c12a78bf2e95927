--! keys lines lanes
--! needs lanes
-- Lanes of tenants, read only.
-- ARGV[4]     how many
-- ARGV[5]     'fair': those first that are served first; 'waiting': those with the most ids; or 'one', to read of ARGV[6] alone
-- Returns {how many lanes there are, {{tenant, from when on it is served, ids that wait, its first due_at or '', what `served` notes
--   of it}, ...}}.
local most, order = tonumber(ARGV[4]), ARGV[5]

local function listed()
  if order == 'fair' then return call('ZRANGE', lanes, 0, most - 1, 'WITHSCORES') end
  if order == 'waiting' then return call('ZRANGE', lanes, 0, -1, 'WITHSCORES') end
  local from = call('ZSCORE', lanes, ARGV[6])
  return from and {ARGV[6], from} or {}
end

local function ids_of(lane)
  local prefix = lane_prefix(lane)
  return '[' .. prefix, '(' .. prefix .. '\255'
end

local found, pairs_of = {}, listed()
for i = 1, #pairs_of, 2 do
  found[#found + 1] = {pairs_of[i], pairs_of[i + 1], call('ZLEXCOUNT', lines, ids_of(pairs_of[i]))}
end
if order == 'waiting' then
  table.sort(found, function(one, other)
    if one[3] ~= other[3] then return one[3] > other[3] end
    return one[1] < other[1]
  end)
  found = {unpack(found, 1, math.min(most, #found))}
end
for _, lane in ipairs(found) do
  local from, to = ids_of(lane[1])
  local first = call('ZRANGE', lines, from, to, 'BYLEX', 'LIMIT', 0, 1)[1]
  lane[4] = first and string.format('%.17g', (struct.unpack('>d', first, #lane_prefix(lane[1]) + 1))) or ''
  lane[5] = cmsgpack.pack(read_lane(lane[1]))
end
return {call('ZCARD', lanes), found}
