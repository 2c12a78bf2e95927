--! keys meta
--! gives reading_step
-- How many payloads may be read at once within a number of bytes, were each as large as the largest ever pushed.
local function reading_step(bytes)
  local max_len = math.max(1, tonumber(call('HGET', meta, 'max_len') or 1))
  return math.max(1, math.floor(bytes / max_len))
end
