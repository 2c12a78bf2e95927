--! keys meta
--! gives turn
-- Whether call number n of the lease session that nonce and token name is to be applied: 'NEXT', 'AGAIN', or 'LOST'; and
-- until when it lasts. The nonce alone would not do: a copy of the session's `acquire` that comes late, behind another
-- session, takes the shard under the old nonce and a new token, and a copy of its settling would end jobs that never ran.
local function turn(nonce, token, n)
  local holder, last, current, held_until = unpack(call('HMGET', meta, 'nonce', 'call', 'token', 'until'))
  if holder ~= nonce or current ~= token then return 'LOST' end
  if not tonumber(held_until) then error('DAMAGED until') end
  if n == tonumber(last) + 1 then return 'NEXT', tonumber(held_until) end
  return n == tonumber(last) and 'AGAIN' or 'LOST', tonumber(held_until)
end
