--! keys items requests
--! needs item_rows
-- Items of a task in the shard that have a status, by number, read only.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  status, a letter
-- ARGV[6]  the number (4 bytes) that they come after, or ''
-- ARGV[7]  how many
-- Returns items as include/item_rows.lua does; of an id that is paused also until when, where the key of requests was passed.
local task, status, after = ARGV[4], ARGV[5], ARGV[6]
local first = after == '' and '[' .. task .. status or '(' .. task .. status .. after
local last = '(' .. task .. string.char(status:byte() + 1)
local found, ids = listed_items(call('ZRANGE', items, first, last, 'BYLEX', 'LIMIT', 0, ARGV[7]))
for i, wanted in ipairs(requests and #ids > 0 and call('HMGET', requests, unpack(ids)) or {}) do
  local pause = wanted and cmsgpack.unpack(wanted).p
  if pause then found[i][11] = string.format('%.17g', pause.ends) end
end
return {found}
