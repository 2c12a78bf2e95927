--! needs texts
--! gives part_of
-- What a search brings of an error: all of its text, or, for 'line', its first line, as far as people see of one: 300
-- characters, of four bytes at most. The beginning that is kept beside a reference mostly has it: texts that differ in
-- a few characters have few hashes in Lua, and to make a thousand of them takes as long as all the rest.
local function part_of(key, stored, part)
  if part ~= 'line' then return text_of(key, stored) end
  local text = stored:sub(2)
  if stored:byte(1) == REFERENCE then
    text = stored:sub(DIGEST + 2)
    if not text:find('[^\n]\n') then text = text_of(key, stored) end
  end
  return text:match('^\n*([^\n]*)'):sub(1, 1200)
end
