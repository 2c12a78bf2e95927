--! keys duties
--! needs duty
-- Claims one run of one duty: the one that has been due for longest. Harmless to repeat.
-- ARGV[4]    nonce
-- ARGV[5..]  of each duty its name, its period and its claim, and its rest or '', all in seconds
-- Returns {name, seconds until another is due}, the name '' if no duty is due.
local nonce, claimed, ttl = ARGV[4]
local latest, next_in = -math.huge, math.huge
for i = 5, #ARGV, 4 do
  local name, every = ARGV[i], tonumber(ARGV[i + 1])
  local due_at, is_held, early, read = state_of(name, every, tonumber(ARGV[i + 3]))
  if is_held and read[1] == nonce then return {name, '0'} end
  local late = read[3] and server_now - due_at or math.huge
  if not is_held and late >= -early and late > latest then
    claimed, latest, ttl = name, late, tonumber(ARGV[i + 2])
  end
  next_in = math.min(next_in, math.max(0, due_at - server_now))
end
if not claimed then return {'', string.format('%.6f', next_in)} end
-- First, as Redis lets a script write when memory is full only after a command that frees.
call('HDEL', duties, '')
call('HSET', duties, claimed .. ':by', nonce, claimed .. ':until', string.format('%.6f', server_now + ttl),
  claimed .. ':began', string.format('%.6f', server_now))
call('HINCRBY', duties, claimed .. ':unfinished', 1)
call('EXPIRE', duties, 30 * 86400)
return {claimed, '0'}
