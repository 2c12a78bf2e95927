--! keys limits
--! gives limits_set limits_that_count
-- The limits that an operator has set: msgpack of a map with `most`, permits, and `rate`, {ids, seconds}, each absent
-- where what code declares counts, and false for no limit.
local function limits_set()
  local packed = call('HGET', limits, 'set')
  local is_sound, set = pcall(cmsgpack.unpack, packed or '')
  return packed and is_sound and type(set) == 'table' and set or nil
end

-- The limits that count: most permits, or math.huge; ids in so many seconds, or nil.
local function limits_that_count(most, limit, per)
  local set = limits_set() or {}
  if set.most ~= nil then most = set.most end
  if set.rate ~= nil then limit, per = unpack(set.rate or {}) end
  return tonumber(most) or math.huge, tonumber(limit), tonumber(per)
end
