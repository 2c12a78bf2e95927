--! keys due retry morgue
--! needs comes_before
-- Ids of the shard by a number, read only.
-- ARGV[4]   which: due, retry or morgue
-- ARGV[5]   lower bound of the number, as Redis writes it
-- ARGV[6]   upper bound of the number
-- ARGV[7]   ids at most
-- ARGV[8]   'up' for the first, 'down' for the last of them
-- ARGV[9]   '', or a number among whose equals only ids that come after [10] (before, for 'down') are meant; the bound
--   on that side is this number
-- ARGV[10]  an id, with [9]
-- Returns {{id, number, ...}}, always upwards.
local keys = {due = due, retry = retry, morgue = morgue}
local key, least, most, limit, down = keys[ARGV[4]], ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8] == 'down'
local equal, than = ARGV[9], ARGV[10]

local function rank_of(bound)
  local exclusive = bound:sub(1, 1) == '('
  return call('ZCOUNT', key, '-inf', exclusive and bound:sub(2) or '(' .. bound)
end

-- How many ids come before those of the equal number that are meant (before their end, for 'down').
local function rank_among_equals()
  local low, high = rank_of(equal), call('ZCOUNT', key, '-inf', equal)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local id = call('ZRANGE', key, middle, middle)[1]
    if comes_before(id, than) or (not down and id == than) then low = middle + 1 else high = middle end
  end
  return low
end

local first, last = rank_of(least), call('ZCOUNT', key, '-inf', most)
if equal ~= '' then
  if down then last = math.min(last, rank_among_equals()) else first = math.max(first, rank_among_equals()) end
end
if down then first = math.max(first, last - limit) else last = math.min(last, first + limit) end
if first >= last then return {{}} end
return {call('ZRANGE', key, first, last - 1, 'WITHSCORES')}
