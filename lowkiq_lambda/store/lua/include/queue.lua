--! keys limits
--! gives queue_now ahead skew
-- The beginning of each script that is about the limits of a queue, not about one shard. ARGV[1..3] as in shard.lua.
-- Time does not go back from call to call here, as what was granted is counted by it: it is the latest that was seen.
local queue_now = tonumber(ARGV[2])
-- By how many seconds all times lie ahead that were written here, as the server's clock was set back since.
local ahead = 0

-- Why the call may not go on, or nil. Only a measured now can show that the clock was set back.
local function skew()
  local seen_at = tonumber(call('HGET', limits, 'now') or queue_now) or queue_now
  if seen_at - queue_now <= 1 then
    queue_now = math.max(queue_now, seen_at)
  elseif ARGV[3] == '1' then
    ahead = seen_at - queue_now
  else
    return {'SKEW', string.format('%.6f', seen_at)}
  end
end
