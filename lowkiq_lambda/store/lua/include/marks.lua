--! keys marks_even marks_odd
--! needs comes_before
--! gives larger marks_of
-- Marks, in a queue with merge = "latest": of an id the largest score that was done, its 8 bytes as in a place. A mark
-- never falls. Two hashes take turns, each for a day or for a hundred thousand ids (raise_marks.lua): the
-- older one goes as a whole. So a mark is kept for a day, unless more ids than that are done in a day.
local function larger(a, b)
  if not a or not b then return a or b end
  return comes_before(a, b) and b or a
end

-- {mark or false, ...}
local function marks_of(ids)
  local even, odd = call('HMGET', marks_even, unpack(ids)), call('HMGET', marks_odd, unpack(ids))
  local marks = {}
  for i in ipairs(ids) do marks[i] = larger(even[i], odd[i]) end
  return marks
end
