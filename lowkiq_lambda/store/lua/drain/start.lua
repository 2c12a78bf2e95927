--! keys meta
--! needs shard turn free_memory_first trouble lease
-- Notes that the handler of a lone suspect is about to run: if its holder dies now, that id has a crash counted.
-- ARGV[4]  nonce
-- ARGV[5]  token
-- ARGV[6]  number of the call
-- ARGV[7]  ttl
-- ARGV[8]  id
-- Returns {'OK'}, {'LOST'}, or a refusal.
local refused = refusal()
if refused then return refused end
local token = ARGV[5]
local verdict, held_until = turn(ARGV[4], token, tonumber(ARGV[6]))
if verdict == 'LOST' then return {'LOST'} end
if verdict == 'NEXT' then
  free_memory_first()
  local t = read_trouble(ARGV[8])
  t.at_risk = true
  write_trouble(ARGV[8], t)
  call('HSET', meta, 'call', ARGV[6])
  hold(token, tonumber(ARGV[7]), held_until)
end
return {'OK'}
