--! keys expiries
--! needs in_use sound_ids sound_meta
--! gives look_at_expiries
-- Expiries: of each arrival number a time (a double). A payload whose own is set aside is never over.
function CHECKS.expiries(arrival, time)
  if not uses('expiry') then note_use('expiry', true) end
  local is_sound = #arrival == 6 and #time == 8 and math.abs(struct.unpack('>d', time)) < math.huge
  if not is_sound then take_away('expiries', expiries, arrival, time, 'no time of a payload') end
end

local function look_at_expiries(parts)
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'expiries', expiries, 'hash'}
  parts[#parts + 1] = 'expiries'
end
