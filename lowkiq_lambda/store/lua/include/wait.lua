--! keys due lines
--! with tenants lanes leave_lines
--! with requests requests
--! gives wait wait_no_more
-- The ids that wait, one at a time. Only enqueue.lua, recover.lua and `leave` (claim.lua), which have many at once, write `due` themselves.
local function wait(id, at)
  if has_requests then at = requested.held_back(id, at) end
  if lines then line_up({at, id}) end
  call('ZADD', due, at, id)
end

local function wait_no_more(id)
  if lines then leave_lines({id}) end
  call('ZREM', due, id)
  if lines then set_served_from(lane_of(id)) end
end
