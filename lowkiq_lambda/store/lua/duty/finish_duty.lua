--! keys duties
--! needs duty
-- Says that the run of a duty is over. Harmless to repeat.
-- ARGV[4]  nonce of its claim
-- ARGV[5]  name
-- ARGV[6]  error, or '' where it did not fail
-- Returns {'OK'}, or {'LOST'} where another run was claimed since.
local name, error_text = ARGV[5], ARGV[6]
local by, held_until = unpack(call('HMGET', duties, name .. ':by', name .. ':until'))
if by ~= ARGV[4] then return {'LOST'} end
if not held_until then return {'OK'} end
call('HDEL', duties, name .. ':until', name .. ':unfinished', name .. ':error')
call('HSET', duties, name .. ':ended', string.format('%.6f', server_now))
if error_text == '' then
  call('HDEL', duties, name .. ':failed')
else
  call('HINCRBY', duties, name .. ':failed', 1)
  call('HSET', duties, name .. ':error', error_text)
end
return {'OK'}
