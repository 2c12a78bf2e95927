--! keys failures
--! gives failures_of failures_size
-- The last failures of an id, {{time, retry_count, the error in brief, the rule that decided or nil}, ...}, newest first;
-- the brief is left out, or false, where the failure after it had the same. They are kept while the id has an error, be it waiting, in flight or dead: what
-- is found of an id that has none was left by a version that knows no such key.
local NUMBERS = 16

local function failures_of(id)
  local packed = call('HGET', failures, id)
  return packed and cmsgpack.unpack(packed) or {}
end

local function failures_size(noted)
  local bytes = 0
  for _, failure in ipairs(noted) do
    bytes = bytes + NUMBERS + (failure[3] and #failure[3] or 0) + (failure[4] and #failure[4] or 0)
  end
  return bytes
end
