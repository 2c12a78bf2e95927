--! keys lease
--! needs shard
--! gives longest_held held_for
-- The most seconds for which a shard can be held: its last renewal lies before now, so the lease ends a TTL from now at
-- the latest, or a second later, as now may be wrong. A later end was written when the server's clock was ahead.
local MISJUDGED = 1
local function longest_held(ttl) return tonumber(ttl) + MISJUDGED end

-- For how many seconds the hash or the key says that it is held.
local function held_for(held_until)
  return math.max(held_until - now, call('PTTL', lease) / 1000, 0)
end
