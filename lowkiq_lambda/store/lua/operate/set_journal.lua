--! keys meta
--! needs shard free_memory_first in_use journal
-- Sets until when the journal has pushes, claims and outcomes too. Harmless to repeat.
-- ARGV[4]  until when, or '' from now on no more
-- Returns {'OK'}, or a refusal.
local refused = refusal()
if refused then return refused end
local before, arrival = unpack(call('HMGET', meta, 'journal_until', 'arrival'))
local traced = (tonumber(before or 0) or 0) > now
free_memory_first()
if ARGV[4] == '' then
  call('HDEL', meta, 'journal_until')
else
  call('HSET', meta, 'journal_until', ARGV[4], 'now', latest_now)
end
note_use('journalling', ARGV[4] ~= '')
enter('level', {
  level = ARGV[4] ~= '' and 'all' or 'trouble', was = traced and 'all' or 'trouble', arrival = tonumber(arrival or 0),
})
write_journal()
return {'OK'}
