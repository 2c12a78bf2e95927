--! needs duty
-- Reads what is known of duties, for people. ARGV[4..] name and period in seconds of each.
-- Returns {{duty, ...}}, a duty being {when it is due, 1 while a claim lasts, began or '', ended or '', failed in a row, ended by nobody
--   in a row, error or ''}.
local states = {}
for i = 4, #ARGV, 2 do
  local due_at, is_held, _, read = state_of(ARGV[i], tonumber(ARGV[i + 1]))
  states[#states + 1] = {string.format('%.6f', due_at), is_held and 1 or 0, read[3] or '', read[4] or '',
    read[5] or '0', read[6] or '0', read[7] or ''}
end
return {states}
