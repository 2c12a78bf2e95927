--! keys meta
-- Whether call number n of the lease session that nonce names is to be applied: 'NEXT', 'AGAIN', or a refusal; and its
-- token, and until when it lasts.
local function turn(nonce, n)
  local holder, last, token, held_until = unpack(call('HMGET', meta, 'nonce', 'call', 'token', 'until'))
  if holder ~= nonce then return 'LOST' end
  if not tonumber(held_until) then error('DAMAGED until') end
  if n == tonumber(last) + 1 then return 'NEXT', token, tonumber(held_until) end
  return n == tonumber(last) and 'AGAIN' or 'LOST', token, tonumber(held_until)
end
