--! keys lines lanes
--! needs lanes
--! gives next_served
-- When an id that is not among `flying`, {id = true, ...}, of which there are `beside`, can be claimed next, or ''.
local function next_served(flying, beside)
  local earliest = math.huge
  local listed = call('ZRANGE', lanes, 0, beside, 'WITHSCORES')
  for i = 1, #listed, 2 do
    local from, prefix = tonumber(listed[i + 1]), lane_prefix(listed[i])
    if from >= earliest then break end
    for _, member in ipairs(call('ZRANGE', lines, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, beside + 1)) do
      if not flying[member:sub(#prefix + 9)] then
        earliest = math.min(earliest, math.max(from, (struct.unpack('>d', member, #prefix + 1))))
        break
      end
    end
  end
  return earliest < math.huge and string.format('%.17g', earliest) or ''
end
