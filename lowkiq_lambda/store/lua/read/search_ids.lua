--! keys due errors morgue morgue_errors
--! needs texts
-- Ids of the shard that people look for, in no order, a step of them, read only.
-- ARGV[4]  which: waiting or morgue
-- ARGV[5]  cursor, '0' at first
-- ARGV[6]  about how many are looked at
-- ARGV[7]  what the ids begin with, or ''
-- ARGV[8]  a text in their stored errors, in small letters, or ''
-- Returns {cursor, '0' at the end, ids looked at, {id, ...}}.
local listed, kept = due, errors
if ARGV[4] == 'morgue' then listed, kept = morgue, morgue_errors end
local prefix, text, length = ARGV[7], ARGV[8], #ARGV[7]
local command, key = 'ZSCAN', listed
if text ~= '' then command, key = 'HSCAN', kept end

local cursor, found = unpack(call(command, key, ARGV[5], 'COUNT', ARGV[6]))
local ids = {}
for i = 1, #found, 2 do
  local id = found[i]
  local wanted = (length == 0 or id:sub(1, length) == prefix)
    -- Errors are kept of what is in flight, too.
    and (text == '' or (text_of(kept, found[i + 1]):lower():find(text, 1, true) and call('ZSCORE', listed, id)))
  if wanted then ids[#ids + 1] = id end
end
return {cursor, #found / 2, ids}
