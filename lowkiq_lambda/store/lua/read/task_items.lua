--! keys rows items requests
-- Items of a task in the shard that have a status, by number, read only.
-- ARGV[4]  task, 12 bytes
-- ARGV[5]  status, a letter
-- ARGV[6]  the number (4 bytes) that they come after, or ''
-- ARGV[7]  how many
-- Returns {{number (4 bytes), id, label or '', attempts, {message, ...}, ref of the item joined or ''}, ...}, a message being a text
--   or the number of a reason; of an id that is paused also until when, where the key of requests was passed.
local task, status, after = ARGV[4], ARGV[5], ARGV[6]
local first = after == '' and '[' .. task .. status or '(' .. task .. status .. after
local last = '(' .. task .. string.char(status:byte() + 1)
local members = call('ZRANGE', items, first, last, 'BYLEX', 'LIMIT', 0, ARGV[7])
local found, ids = {}, {}
for _, member in ipairs(members) do
  local number = member:sub(#task + 2)
  local packed = call('HGET', rows, task .. number)
  local is_sound, row = pcall(cmsgpack.unpack, packed or '')
  if is_sound and type(row) == 'table' then
    ids[#ids + 1] = row.i or ''
    found[#ids] = {number, ids[#ids], row.k or '', row.n or 0, row.m or {}, row.w or ''}
  end
end
for i, wanted in ipairs(requests and #ids > 0 and call('HMGET', requests, unpack(ids)) or {}) do
  local pause = wanted and cmsgpack.unpack(wanted).p
  if pause then found[i][7] = string.format('%.17g', pause.ends) end
end
return {found}
