--! include shard
-- Ends the use of an empty shard, whose queue is about to have another number of shards: from then on every script
-- refuses it. Or begins it anew. Harmless to repeat.
-- ARGV[4] '1' to close, '' to open. Returns {'OK', 1 if the shard is open, as it holds jobs or was to be, else 0}, or a
--   refusal.
local refused = refusal()
if refused and refused[1] ~= 'CLOSED' then return refused end
local holds_jobs = call('EXISTS', due, jobs, box, held, suspects, flight, morgue, morgue_payloads) > 0
if ARGV[4] == '1' and holds_jobs then return {'OK', 1} end
free_memory_first()
if ARGV[4] == '' then
  call('HDEL', meta, 'closed')
  return {'OK', 1}
end
call('UNLINK', pushes_even, pushes_odd, failures, texts)
call('HSET', meta, 'closed', 1, 'now', latest_now)
return {'OK', 0}
