--! keys due jobs box suspects flight morgue morgue_payloads meta
--! needs shard
--! gives floors_now raise_floors above_all kin
-- What later pushes and leases must not fall behind: arrival number, last default score, token. And the number above which
-- all are that the shard holds: where it holds nothing, the last that it gave.
local function floors_now()
  local arrival, last_score, token = unpack(call('HMGET', meta, 'arrival', 'last_score', 'token'))
  return arrival or '0', last_score or '-1', token or '0'
end

-- Of which move, and from which number on: what the shards have that it filled has numbers that differ.
local function kin() return call('HGET', meta, 'kin') or '' end

-- Kept, as later pushes do not change it: the mover has made room by it.
local function above_all()
  if call('EXISTS', due, jobs, box, suspects, flight, morgue, morgue_payloads) == 0 then
    call('HSET', meta, 'above', (floors_now()))
  end
  return call('HGET', meta, 'above') or '0'
end

local function raise_floors(arrival, last_score, token)
  local own_arrival, own_score, own_token = floors_now()
  local function larger(own, given) return tonumber(given) > tonumber(own) and given or own end
  call('HSET', meta, 'arrival', larger(own_arrival, arrival), 'last_score', larger(own_score, last_score),
    'token', larger(own_token, token), 'now', latest_now)
end
