--! keys errors morgue_errors
--! needs error_part failures
-- Last errors of ids, in no order, a step of them, each part of a text once, read only.
-- ARGV[4]  which: waiting or morgue
-- ARGV[5]  cursor, '0' at first
-- ARGV[6]  about how many are looked at
-- ARGV[7]  the part of a text in the reply: 'line' or 'text'
-- Returns {cursor, '0' at the end, errors read, {{text, {newest, oldest, newest, oldest, ...}}, ...}}: the times of
--   each id's newest and oldest failure that is kept, Unix seconds as texts, 0 if none is.
local kept = ARGV[4] == 'morgue' and morgue_errors or errors
local cursor, found = unpack(call('HSCAN', kept, ARGV[5], 'COUNT', ARGV[6]))
local grouped, by_text, read = {}, {}, 0
for i = 1, #found, 2 do
  local id = found[i]
  -- A value behind the byte 255 is not an error.
  if id:byte(1) ~= 255 then
    read = read + 1
    local text = part_of(kept, found[i + 1], ARGV[7])
    local group = by_text[text]
    if not group then
      group = {text, {}}
      by_text[text], grouped[#grouped + 1] = group, group
    end
    local failed, times = failures_of(id), group[2]
    times[#times + 1] = failed[1] and string.format('%.3f', failed[1][1]) or '0'
    times[#times + 1] = failed[1] and string.format('%.3f', failed[#failed][1]) or '0'
  end
end
return {cursor, read, grouped}
