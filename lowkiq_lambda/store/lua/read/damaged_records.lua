--! keys damaged
-- What was set aside, read only.
-- ARGV[4]  bytes of each record that are shown
-- Returns {{record, ...}}, the oldest first, a record being {number, time, key, id or field or '', why, bytes, how many
--   there were}.
local reply = {}
for i, packed in ipairs(call('LRANGE', damaged, 0, -1)) do
  local ok, item = pcall(cmsgpack.unpack, packed)
  local number, at, key, id, why, bytes, size = unpack(ok and type(item) == 'table' and #item == 7 and item
    or {0, 0, 'damaged', '', 'not what was set aside', packed, #packed})
  reply[i] = {
    string.format('%.0f', number), string.format('%.17g', at), key, id, why,
    bytes:sub(1, tonumber(ARGV[4])), string.format('%.0f', size),
  }
end
return {reply}
