--! keys suspects groups
--! needs trouble claim
-- Suspects go first, each alone; those of a group that proved systemic go together, to be charged and not run.
local function claim_suspects(merge, head, limits)
  local group = read_trouble(head[1]).group
  local state = group and group ~= '' and call('HGET', groups, group)
  state = state and cmsgpack.unpack(state)
  if not (state and state.systemic) then
    local window, oldest = take(merge, {head[1]}, {head[2]}, {1, limits[2], limits[3]})
    return 'LONE', window, oldest
  end
  local ids, times = {}, {}
  local listed = call('ZRANGE', suspects, 0, limits[1] - 1, 'WITHSCORES')
  for i = 1, #listed, 2 do
    if read_trouble(listed[i]).group == group then
      ids[#ids + 1] = listed[i]
      times[#times + 1] = listed[i + 1]
    end
  end
  local window, oldest = take(merge, ids, times, {limits[1], limits[1], limits[3]})
  return 'CHARGE', window, oldest, state.error
end

