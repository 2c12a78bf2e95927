--! keys due jobs box suspects flight morgue morgue_payloads meta
--! needs shard mover floors free_memory_first in_use journal
-- Makes a shard receive what a move brings it: from then on it takes pushes. Harmless to repeat, and to call again with
-- larger floors, also once the shard is open.
-- ARGV[4]   epoch
-- ARGV[5..7]  floors: arrival number, default score, token
-- ARGV[8]   the number above which all are that come
-- ARGV[9]   kin: epoch and group of the move, and the first of the numbers that pushes get here
-- ARGV[10]  merge; or '' where only the floors are raised, of a shard that this move or a later one has given an order
-- ARGV[11]  msgpack of fields of meta that operators have set, to their values
-- Returns {'OK'}; {'SOON', seconds} where the shard was closed too short a time ago; {'JOBS'} where it has any; {'OVER'};
--   or a refusal.
local REST = 120
local merge = ARGV[10]
local refused, last = outdated()
if refused == OVER and merge == '' then
  -- A pusher may be several moves behind; a shard that does not take its push refuses it.
  free_memory_first()
  raise_floors('0', ARGV[6], ARGV[7])
  return {'OK'}
end
if refused then return refused end
if is_sealed(last) then return OVER end
if last ~= epoch then
  if merge == '' then return OVER end
  local closed, closed_at, refused_at, receiving =
    unpack(call('HMGET', meta, 'closed', 'closed_at', 'refused_at', 'receiving'))
  -- It is in use.
  if last and not closed and not receiving then return {'JOBS'} end
  -- A push whose answer was lost may still be on its way here.
  local rests = math.max(tonumber(closed_at or 0), tonumber(refused_at or 0)) + REST - now
  if rests > 0 then return {'SOON', string.format('%.6f', math.min(rests, REST))} end
  if call('EXISTS', due, jobs, box, suspects, flight, morgue, morgue_payloads) > 0 then return {'JOBS'} end
end
free_memory_first()
raise_floors(ARGV[5], ARGV[6], ARGV[7])
if last ~= epoch then
  call('HDEL', meta, 'closed', 'closed_at', 'refused_at', 'still_until', 'in_use', 'action', 'quiet', 'recovery')
  call('HSET', meta, 'receiving', ARGV[4], 'generation', ARGV[4], 'merge', merge, 'above', ARGV[8], 'kin', ARGV[9])
elseif merge == '' or call('HEXISTS', meta, 'receiving') == 0 then
  return {'OK'}
end
local set = cmsgpack.unpack(ARGV[11])
if set.journal_until then
  note_use('journalling', true)
  -- What has an arrival number up to this one is brought by the move.
  if last ~= epoch then
    enter('level', {level = 'all', was = 'trouble', arrival = tonumber(call('HGET', meta, 'arrival') or 0)})
    write_journal(ARGV[4])
  end
end
for field, value in pairs(set) do call('HSET', meta, field, value) end
return {'OK'}
