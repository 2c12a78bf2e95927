--! keys meta
--! gives morgue_growth count_dead
-- By how many bytes the morgue has grown in this call.
local morgue_growth = 0

local function count_dead(bytes)
  if bytes ~= 0 then call('HINCRBY', meta, 'morgue_bytes', bytes) end
  morgue_growth = morgue_growth + math.max(0, bytes)
end
