--! keys meta
--! needs shard
--! gives note_work
-- What a holder did since its last settling: payloads, calls, how long these took, and how long the lease was held. All of it
-- is one command, with the number of the call, and one that reads what was there: counters one by one would be four.
local function added(before, more)
  local sum = (before or 0) + more
  if not (math.abs(sum) < math.huge) then error('DAMAGED counter') end
  return string.format('%.0f', sum)
end

-- `first`: where the arguments begin: payloads, calls, milliseconds of these, and milliseconds of computing in them.
local function note_work(n, pace, first)
  local payloads, calls, busy, computing, held, acquired_at, settled_at =
    unpack(call('HMGET', meta, 'payloads', 'calls', 'busy_ms', 'computing_ms', 'held_ms', 'acquired_at', 'settled_at'))
  local since = math.max(tonumber(acquired_at) or now, tonumber(settled_at) or 0)
  call('HSET', meta, 'call', n, 'pace', pace, 'payloads', added(payloads, ARGV[first]), 'calls', added(calls, ARGV[first + 1]),
    'busy_ms', added(busy, ARGV[first + 2]), 'computing_ms', added(computing, ARGV[first + 3]),
    'held_ms', added(held, math.max(0, (now - since) * 1000)), 'settled_at', now)
end
