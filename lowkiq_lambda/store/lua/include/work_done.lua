--! keys meta
--! needs shard work
--! gives note_work
-- What a holder did since its last settling, beside the number of the call: one command that reads what was there, one that
-- writes, and no text in between.
-- `first`: where the arguments begin: payloads, calls, milliseconds of these, and milliseconds of computing in them.
local function note_work(n, pace, first)
  local packed, acquired_at = unpack(call('HMGET', meta, 'work', 'acquired_at'))
  local payloads, calls, busy, computing, held, counted_until = work_of(packed)
  local seconds = now - math.max(acquired_at or now, counted_until)
  if not (math.abs(payloads + calls + busy + computing + held) < math.huge) then error('DAMAGED work') end
  call('HSET', meta, 'call', n, 'pace', pace, 'work', struct.pack(
    WORK_FORMAT, payloads + ARGV[first], calls + ARGV[first + 1], busy + ARGV[first + 2], computing + ARGV[first + 3],
    held + (seconds > 0 and math.floor(seconds * 1000 + 0.5) or 0), now
  ))
end
