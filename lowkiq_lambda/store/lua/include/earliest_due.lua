--! keys due lanes
--! gives earliest_due
-- When something can be claimed next, or ''.
local function earliest_due()
  return call('ZRANGE', lanes or due, 0, 0, 'WITHSCORES')[2] or ''
end
