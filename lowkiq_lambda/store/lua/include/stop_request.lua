--! keys meta
--! needs shard
-- Why the holder of this token is to come to an end before its time, as `settle` and `renew` tell it: 'paused' where an
-- operator has paused the shard, 'quiet' where one has asked this holder to let go, else ''.
local function stop_request(token)
  local paused_until, quiet = unpack(call('HMGET', meta, 'paused_until', 'quiet'))
  if paused_until and tonumber(paused_until) > now then return 'paused' end
  return quiet and quiet == token and 'quiet' or ''
end
