--! keys expiries
--! gives join_expiries
-- Of two equal payloads that became one: the one that is kept has the later expiry, and none if either has none.
local function join_expiries(kept_place, gone_place)
  local kept, gone = kept_place:sub(9), gone_place:sub(9)
  if kept == gone then return end
  local of_kept, of_gone = unpack(call('HMGET', expiries, kept, gone))
  if of_gone then call('HDEL', expiries, gone) end
  if not of_kept then return end
  if not of_gone then
    call('HDEL', expiries, kept)
  elseif struct.unpack('>d', of_gone) > struct.unpack('>d', of_kept) then
    call('HSET', expiries, kept, of_gone)
  end
end
