--! keys marks_even marks_odd
--! needs sound sound_ids sound_meta
--! gives look_at_marks
-- Marks: of each id 8 bytes of a score. One that is set aside accepts any score again.
for name, key in pairs({marks_even = marks_even, marks_odd = marks_odd}) do
  CHECKS[name] = function(id, score)
    if is_utf8(id) and #score == 8 and score:byte(1) > 0 and score:byte(1) < 255 then return end
    take_away(name, key, id, score, 'no score of an id')
  end
end

local function look_at_marks(parts)
  for _, part in ipairs({{'marks_even', marks_even, 'hash'}, {'marks_odd', marks_odd, 'hash'}}) do
    KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = part
    parts[#parts + 1] = part[1]
  end
end
