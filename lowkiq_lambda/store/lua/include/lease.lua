--! keys meta lease
--! needs shard
--! gives hold
-- The lease stands in two places: the PX key, and token, nonce and until in the durable hash. See docs/lease.md.
-- `held_until`: what the hash says, which a call that comes late must not set back; 0 to cut the lease. The key's time
-- counts from now on, so that it is later than before in any case.
local function hold(token, ttl, held_until)
  call('SET', lease, token, 'PX', math.ceil(ttl * 1000))
  call('HSET', meta, 'until', math.max(now + ttl, held_until), 'now', latest_now)
end
