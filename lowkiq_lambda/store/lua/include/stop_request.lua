--! keys meta
--! needs shard limited
--! gives stop_request
-- Why the holder of this token, whose nonce is ARGV[4], is to come to an end before its time, as `settle` and `renew` tell
-- it: 'paused' where an operator has paused the shard, or its ids are about to move, 'limited' where one has set limits of the queue and this holder has
-- no permit, 'quiet' where one has asked this holder to let go, else ''.
local function stop_request(token)
  local paused_until, quiet, mark, still_until =
    unpack(call('HMGET', meta, 'paused_until', 'quiet', 'limited', 'still_until'))
  if paused_until and tonumber(paused_until) > now then return 'paused' end
  if still_until and tonumber(still_until) > now then return 'paused' end
  if lacks_permit(mark, ARGV[4]) then return 'limited' end
  return quiet and quiet == token and 'quiet' or ''
end
