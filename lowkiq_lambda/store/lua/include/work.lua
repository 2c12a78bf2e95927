--! gives WORK_FORMAT work_of
-- What holders did with a shard: payloads, calls, milliseconds of these, of computing in them, and under a lease; and until
-- when the time under it is counted. One field of meta has all of it: each further field makes each call a little dearer.
local WORK_FORMAT, WORK_SIZE = '>dddddd', 48

-- The six numbers of the field, zeros where there is none.
local function work_of(packed)
  if not packed then return 0, 0, 0, 0, 0, 0 end
  if #packed ~= WORK_SIZE then error('DAMAGED work') end
  return struct.unpack(WORK_FORMAT, packed)
end
