--! keys alive orders
-- Notes that a process lives, and answers its order. Harmless to repeat.
-- ARGV[4]  the process
-- ARGV[5]  its description, opaque
-- ARGV[6]  seconds after its last heartbeat when a process is forgotten
-- Returns {'quiet', 'stop' or ''}.
local now_text, process, description, kept = ARGV[2], ARGV[4], ARGV[5], tonumber(ARGV[6])
-- A few at random: that forgets all of them in time, and costs the same for any number of processes.
local others = call('HRANDFIELD', alive, 8, 'WITHVALUES')
for i = 1, #others, 2 do
  local seen_at = tonumber(others[i + 1]:match('^%S+'))
  if not seen_at or tonumber(now_text) - seen_at > kept then
    call('HDEL', alive, others[i])
    call('HDEL', orders, others[i])
  end
end
-- First, as Redis lets a script write when memory is full only after a command that frees.
call('HDEL', alive, process)
call('HSET', alive, process, now_text .. ' ' .. description)
return {call('HGET', orders, process) or ''}
