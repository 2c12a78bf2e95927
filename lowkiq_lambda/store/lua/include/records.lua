--! gives PLACE UNTOUCHED SEVERAL TOUCHED STARTED untouched
-- What waits under an id. A place is score (8 bytes, order-preserving) and arrival number (6 bytes): its byte order is
-- the order in which payloads are handed over. The record of a single payload is 's' place payload, or 't' touched
-- place payload once an equal one was pushed again; that of several is 'm' touched, with the payloads in the box;
-- that of a started job (started.lua) is 'p' touched, with what it was handed, and what waits behind that, in the box.
local PLACE, UNTOUCHED, SEVERAL, TOUCHED, STARTED = 14, string.rep('\0', 6), ('m'):byte(), ('t'):byte(), ('p'):byte()

-- The same as 's' place payload.
local function untouched(record)
  return record:byte(1) == TOUCHED and #record > 7 + PLACE and 's' .. record:sub(8) or record
end
