--! keys meta
--! needs shard
--! gives note_work
-- What a holder did since its last settling: payloads, calls, how long these took, and how long the lease was held. All of it
-- is one command, with the number of the call, and one that reads what was there: counters one by one would be four.
-- `first`: where the arguments begin: payloads, calls, milliseconds of these, and milliseconds of computing in them.
local function note_work(n, pace, first)
  local payloads, calls, busy, computing, held, acquired_at, settled_at =
    unpack(call('HMGET', meta, 'payloads', 'calls', 'busy_ms', 'computing_ms', 'held_ms', 'acquired_at', 'settled_at'))
  payloads, calls, busy = (payloads or 0) + ARGV[first], (calls or 0) + ARGV[first + 1], (busy or 0) + ARGV[first + 2]
  computing = (computing or 0) + ARGV[first + 3]
  local seconds = now - math.max(acquired_at or now, settled_at or 0)
  held = (held or 0) + (seconds > 0 and math.floor(seconds * 1000 + 0.5) or 0)
  if not (math.abs(payloads + calls + busy + computing + held) < math.huge) then error('DAMAGED counter') end
  call('HSET', meta, 'call', n, 'pace', pace, 'payloads', payloads, 'calls', calls, 'busy_ms', busy,
    'computing_ms', computing, 'held_ms', held, 'settled_at', now)
end
