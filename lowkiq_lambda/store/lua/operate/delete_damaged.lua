--! keys meta damaged
--! needs shard free_memory_first
-- Deletes what was set aside, up to a number. Harmless to repeat.
-- ARGV[4]  the number
-- Returns {'OK', how many records were deleted}, or a refusal.
local refused = refusal()
if refused then return refused end
local last, gone = tonumber(ARGV[4]), 0
free_memory_first()
while true do
  local packed = call('LINDEX', damaged, 0)
  local ok, item = pcall(cmsgpack.unpack, packed or '')
  if not packed or (ok and type(item) == 'table' and tonumber(item[1]) and item[1] > last) then break end
  call('LPOP', damaged)
  call('HINCRBY', meta, 'damaged_bytes', -#packed)
  gone = gone + 1
end
return {'OK', gone}
