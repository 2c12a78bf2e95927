--! keys requests
--! needs requests
--! gives forget_cancels
-- What is done cannot be cancelled any more: ids in flight that are.
local function forget_cancels(ids)
  if call('EXISTS', requests) == 0 then return end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    local request = packed and cmsgpack.unpack(packed)
    if request and request.c then
      request.c = nil
      write_request(ids[i], request)
    end
  end
end
