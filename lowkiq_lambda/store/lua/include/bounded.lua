--! keys due
--! gives room_left
-- What a push does in a queue with a bound of waiting ids.
-- The last 8 bytes of the last of ARGV  how many ids may wait in the shard (a double)

-- How many more may come, and how many wait. Those that wait for a retry or for their time count; put-backs do not ask.
local function room_left()
  local waiting, bound = call('ZCARD', due), ARGV[#ARGV]
  return struct.unpack('>d', bound, #bound - 7) - waiting, waiting
end
