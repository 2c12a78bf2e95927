--! keys errors morgue failures
--! needs keep_error exists
--! gives forget_errors
-- These ids' errors, with their failures; what lies in the morgue keeps those.
local function forget_errors(ids)
  if drop_errors(errors, ids) == 0 then return end
  if not exists(morgue) then
    if exists(errors) then call('HDEL', failures, unpack(ids)) else call('DEL', failures) end
    return
  end
  local gone = {}
  for i, dead_since in ipairs(call('ZMSCORE', morgue, unpack(ids))) do
    if not dead_since then gone[#gone + 1] = ids[i] end
  end
  if #gone > 0 then call('HDEL', failures, unpack(gone)) end
end
