--! keys retry errors morgue_errors
--! needs comes_before texts
-- Those of these ids that a search wants, read only.
-- ARGV[4]     'waiting' or 'morgue'
-- ARGV[5]     lower bound of the retry_count: a number, behind '(' or not, or ''
-- ARGV[6]     upper bound of the retry_count
-- ARGV[7]     lower bound of the id, behind '[' or '(', or ''
-- ARGV[8]     upper bound of the id
-- ARGV[9]     what the id begins with
-- ARGV[10]    what its last error contains, in small letters, or ''
-- ARGV[11..]  ids
-- Returns {{id, ...}}.
local least, most, first, last, prefix, part = unpack(ARGV, 5, 10)
local kept = ARGV[4] == 'morgue' and morgue_errors or errors

-- Whether the first comes before the bound, or is it, where that is left out.
local function outside(a, bound, b, before)
  return before(a, b) or (bound:sub(1, 1) == '(' and a == b)
end

local function less(a, b) return a < b end
local function more(a, b) return a > b end
local function comes_after(a, b) return comes_before(b, a) end
local function number_of(bound) return tonumber((bound:gsub('^%(', ''))) end
local low, high = number_of(least), number_of(most)

local function wanted(id)
  if id:sub(1, #prefix) ~= prefix then return false end
  if first ~= '' and outside(id, first, first:sub(2), comes_before) then return false end
  if last ~= '' and outside(id, last, last:sub(2), comes_after) then return false end
  if low or high then
    local count = tonumber(call('ZSCORE', retry, id) or -1)
    if low and outside(count, least, low, less) then return false end
    if high and outside(count, most, high, more) then return false end
  end
  if part == '' then return true end
  local text = error_of(kept, id)
  return text and text:lower():find(part, 1, true) ~= nil
end

local found = {}
for i = 11, #ARGV do
  if wanted(ARGV[i]) then found[#found + 1] = ARGV[i] end
end
return {found}
