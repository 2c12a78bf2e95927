--! keys meta
--! needs shard
--! gives note_work
-- What a holder did since its last settling, beside the number of the call: one command that reads what was there, one that
-- writes, and no text in between. The field is that of include/work.lua.
local WORK, NOTHING = '>dddddd', ('\0'):rep(48)

-- `more`: the first four numbers of the field, as they are packed there.
local function note_work(n, pace, more)
  local packed, acquired_at = unpack(call('HMGET', meta, 'work', 'acquired_at'))
  packed = packed or NOTHING
  if #packed ~= #NOTHING then error('DAMAGED work') end
  local payloads, calls, busy, computing, held, counted_until = struct.unpack(WORK, packed)
  local performed, ended, took, computed = struct.unpack('>dddd', more)
  local seconds = now - math.max(acquired_at or now, counted_until)
  if not (math.abs(payloads + calls + busy + computing + held) < math.huge) then error('DAMAGED work') end
  call('HSET', meta, 'call', n, 'pace', pace, 'work', struct.pack(
    WORK, payloads + performed, calls + ended, busy + took, computing + computed,
    held + (seconds > 0 and math.floor(seconds * 1000 + 0.5) or 0), now
  ))
end
