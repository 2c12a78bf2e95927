--! keys meta
--! needs shard free_memory_first earliest_due
-- Until a time, no process may take the shard or claim more of it; or ends that. Harmless to repeat.
-- ARGV[4]  until when, or '' to end a pause
-- Returns {'OK', earliest due or ''}, or a refusal.
local refused = refusal()
if refused then return refused end
free_memory_first()
if ARGV[4] == '' then
  call('HDEL', meta, 'paused_until')
else
  call('HSET', meta, 'paused_until', ARGV[4], 'now', latest_now)
end
return {'OK', earliest_due()}
