--! keys marks_even marks_odd
--! needs shard free_memory_first
-- Forgets up to which score ids have been done, so that any score is accepted again. Harmless to repeat.
-- ARGV[4..]  ids
-- Returns {'OK', how many had a mark}, or a refusal.
local refused = refusal('latest')
if refused then return refused end
free_memory_first()
local forgotten = 0
for i = 4, #ARGV do
  if call('HDEL', marks_even, ARGV[i]) + call('HDEL', marks_odd, ARGV[i]) > 0 then forgotten = forgotten + 1 end
end
return {'OK', forgotten}
