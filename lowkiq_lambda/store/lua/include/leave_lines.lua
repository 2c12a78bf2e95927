--! keys due lines
--! needs lanes
--! gives leave_lines
-- Before these ids leave due; the caller sees to the fair order of their lanes.
local function leave_lines(ids)
  local members = {}
  for i, at in ipairs(call('ZMSCORE', due, unpack(ids))) do
    local id = ids[i]
    if at then members[#members + 1] = lane_prefix(lane_of(id)) .. time_bytes(tonumber(at)) .. id end
  end
  if #members > 0 then call('ZREM', lines, unpack(members)) end
end
