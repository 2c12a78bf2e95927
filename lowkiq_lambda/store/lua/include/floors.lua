--! keys meta
--! needs shard
-- What later pushes and leases must not fall behind: arrival number, last default score, token.
local function floors_now()
  local arrival, last_score, token = unpack(call('HMGET', meta, 'arrival', 'last_score', 'token'))
  return arrival or '0', last_score or '-1', token or '0'
end

local function raise_floors(arrival, last_score, token)
  local own_arrival, own_score, own_token = floors_now()
  local function larger(own, given) return tonumber(given) > tonumber(own) and given or own end
  call('HSET', meta, 'arrival', larger(own_arrival, arrival), 'last_score', larger(own_score, last_score),
    'token', larger(own_token, token), 'now', latest_now)
end
