--! keys due
-- The ids that wait, one at a time. Only enqueue.lua and `leave` (claim.lua), which have many at once, write `due` themselves.
local function wait(id, at) call('ZADD', due, at, id) end

local function wait_no_more(id) call('ZREM', due, id) end
