--! keys expiries
--! needs in_use
--! gives write_expiries
-- When payloads are over: arrival number to a time (a double, Unix seconds). A payload without one is never over.
local function write_expiries(fields)
  call('HSET', expiries, unpack(fields))
  note_use('expiry', true)
end
