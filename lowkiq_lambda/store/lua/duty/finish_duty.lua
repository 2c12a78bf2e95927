--! keys duties
--! needs duty
-- Says that the run of a duty is over. Harmless to repeat.
-- ARGV[4]  nonce of its claim
-- ARGV[5]  name
-- ARGV[6]  error, or '' where it did not fail
-- ARGV[7]  in how many seconds it is to run again, or '' for its period
-- Returns {'OK'}, or {'LOST'} where another run was claimed since.
local name, error_text, again_in = ARGV[5], ARGV[6], tonumber(ARGV[7])
local by, held_until = unpack(call('HMGET', duties, name .. ':by', name .. ':until'))
if by ~= ARGV[4] then return {'LOST'} end
if not held_until then return {'OK'} end
call('HDEL', duties, name .. ':until', name .. ':unfinished', name .. ':error', name .. ':next')
call('HSET', duties, name .. ':ended', string.format('%.6f', server_now))
if again_in then call('HSET', duties, name .. ':next', string.format('%.6f', server_now + again_in)) end
if error_text == '' then
  call('HDEL', duties, name .. ':failed')
else
  call('HINCRBY', duties, name .. ':failed', 1)
  call('HSET', duties, name .. ':error', error_text)
end
return {'OK'}
