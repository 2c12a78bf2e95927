--! keys due
local function earliest_due()
  return call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or ''
end
