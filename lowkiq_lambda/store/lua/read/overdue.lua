--! keys due jobs expiries
--! needs oldest_entry records
-- Ids that are due and whose oldest payload is over, read only: of the first of those that are due.
-- ARGV[4]  Unix seconds, as the caller judges the server's time
-- Returns {how many}.
local LOOKED_AT, now, count, arrivals = 1000, tonumber(ARGV[4]), 0, {}
if not has_expiry or call('EXISTS', expiries) == 0 then return {0} end
local ids = call('ZRANGE', due, '-inf', ARGV[4], 'BYSCORE', 'LIMIT', 0, LOOKED_AT)
for i, record in ipairs(#ids > 0 and call('HMGET', jobs, unpack(ids)) or {}) do
  local oldest = record and oldest_entry(ids[i], record)
  if oldest then arrivals[#arrivals + 1] = oldest:sub(9, PLACE) end
end
for _, time in ipairs(#arrivals > 0 and call('HMGET', expiries, unpack(arrivals)) or {}) do
  if time and struct.unpack('>d', time) < now then count = count + 1 end
end
return {count}
