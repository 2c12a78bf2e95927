--! keys meta
--! needs shard turn free_memory_first trouble lease
-- Notes that the handler of a lone suspect is about to run: if its holder dies now, that id gets a strike.
-- ARGV[4]  nonce
-- ARGV[5]  number of the call
-- ARGV[6]  ttl
-- ARGV[7]  id
-- Returns {'OK'}, {'LOST'}, or a refusal.
local refused = refusal()
if refused then return refused end
local verdict, token, held_until = turn(ARGV[4], tonumber(ARGV[5]))
if verdict == 'LOST' then return {'LOST'} end
if verdict == 'NEXT' then
  free_memory_first()
  local t = read_trouble(ARGV[7])
  t.at_risk = true
  write_trouble(ARGV[7], t)
  call('HSET', meta, 'call', ARGV[5])
  hold(token, tonumber(ARGV[6]), held_until)
end
return {'OK'}
