-- The lease stands in two places: the PX key, and token, nonce and until in the durable hash. See docs/lease.md.
local function hold(token, ttl)
  call('SET', lease, token, 'PX', math.ceil(ttl * 1000))
  call('HSET', meta, 'until', now + ttl, 'now', latest_now)
end

local function let_go()
  call('DEL', lease)
  call('HSET', meta, 'until', 0, 'now', latest_now)
end

-- Whether call number n of the holding that nonce names is to be applied: 'NEXT', 'AGAIN', or a refusal; and the
-- holding's token.
local function turn(nonce, n)
  local holder, last, token = unpack(call('HMGET', meta, 'nonce', 'call', 'token'))
  if holder ~= nonce then return 'LOST' end
  if n == tonumber(last) + 1 then return 'NEXT', token end
  return n == tonumber(last) and 'AGAIN' or 'LOST'
end

local function earliest_due()
  return call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or ''
end
