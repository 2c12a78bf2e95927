-- The lease stands in two places: the PX key, and token, nonce and until in the durable hash. See docs/lease.md.
-- `held_until`: what the hash says, which a call that comes late must not set back; 0 to cut the lease. The key's time
-- counts from now on, so that it is later than before in any case.
local function hold(token, ttl, held_until)
  call('SET', lease, token, 'PX', math.ceil(ttl * 1000))
  call('HSET', meta, 'until', math.max(now + ttl, held_until), 'now', latest_now)
end

local function let_go()
  call('DEL', lease)
  call('HSET', meta, 'until', 0, 'now', latest_now)
end

-- The most seconds for which a shard can be held: its last renewal lies before now, so the lease ends a TTL from now at
-- the latest, or a second later, as now may be wrong. What is beyond was written when the server's clock was ahead.
local MISJUDGED = 1
local function longest_held(ttl) return tonumber(ttl or math.huge) + MISJUDGED end

-- For how many seconds the hash or the key says that it is held.
local function held_for(held_until)
  return math.max(held_until - now, call('PTTL', lease) / 1000, 0)
end

-- Whether call number n of the holding that nonce names is to be applied: 'NEXT', 'AGAIN', or a refusal; and the
-- holding's token, and until when it lasts.
local function turn(nonce, n)
  local holder, last, token, held_until = unpack(call('HMGET', meta, 'nonce', 'call', 'token', 'until'))
  if holder ~= nonce then return 'LOST' end
  if not tonumber(held_until) then error('DAMAGED until') end
  if n == tonumber(last) + 1 then return 'NEXT', token, tonumber(held_until) end
  return n == tonumber(last) and 'AGAIN' or 'LOST', token, tonumber(held_until)
end

local function earliest_due()
  return call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or ''
end
