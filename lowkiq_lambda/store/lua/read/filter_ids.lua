--! keys retry errors morgue_errors
--! needs comes_before error_part texts
-- Those of these ids that a search wants, read only.
-- ARGV[4]     'waiting' or 'morgue'
-- ARGV[5]     lower bound of the retry_count: a number, behind '(' or not, or ''
-- ARGV[6]     upper bound of the retry_count
-- ARGV[7]     lower bound of the id, behind '[' or '(', or ''
-- ARGV[8]     upper bound of the id
-- ARGV[9]     what the id begins with
-- ARGV[10]    what its last error contains, in small letters, or ''
-- ARGV[11]    the part of their last errors in the reply: 'line', 'text', or '' for nothing; of an id without one, no id
-- ARGV[12..]  ids
-- Returns {{id, ...}, {error, ...}}: as many errors as ids, or none.
local least, most, first, last, prefix, searched, error_part = unpack(ARGV, 5, 11)
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
  return true
end

local by_error, found, error_parts = searched ~= '' or error_part ~= '', {}, {}
for i = 12, #ARGV do
  local id = ARGV[i]
  local stored = by_error and wanted(id) and call('HGET', kept, id)
  if stored and (searched == '' or text_of(kept, stored):lower():find(searched, 1, true)) then
    found[#found + 1] = id
    if error_part ~= '' then error_parts[#found] = part_of(kept, stored, error_part) end
  elseif not by_error and wanted(id) then
    found[#found + 1] = id
  end
end
return {found, error_parts}
