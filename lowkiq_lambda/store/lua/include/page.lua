--! needs put reading_step
--! gives page
-- The payloads of an id in the box or in the morgue, a page of them: about `bytes`, and at least one.
-- after: '', or the place (without the payload) from which to go on.
-- Returns {entry, ...}, their bytes, and the place where there is more, or nil.
local function page(key, id, after, most, bytes)
  local prefix, step = box_prefix(id), reading_step(bytes)
  local from, to = box_range(prefix)
  if after ~= '' then from = '[' .. prefix .. after end
  local entries, size = {}, 0
  while #entries < most and size < bytes do
    local members = call('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, math.min(step, most - #entries))
    if #members == 0 then return entries, size end
    for _, member in ipairs(members) do
      size = size + #member
      entries[#entries + 1] = member:sub(#prefix + 1)
    end
    from = '(' .. members[#members]
  end
  if call('ZLEXCOUNT', key, from, to) == 0 then return entries, size end
  local last = entries[#entries]
  return entries, size, last:sub(1, 8) .. struct.pack('>I6', struct.unpack('>I6', last, 9) + 1)
end
