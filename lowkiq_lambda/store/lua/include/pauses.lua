--! needs requests shard
--! gives pause_of held_back
-- An id that is paused waits until the end of that, whoever writes its time (wait.lua).

-- Its request, while the pause lasts; else nil.
local function pause_of(id)
  local request = request_of(id)
  return request and request.p and request.p.ends > now and request or nil
end

-- When the id is due that would be due at `at`, which is noted.
local function held_back(id, at)
  local request = pause_of(id)
  if not request then return at end
  local ends, own = request.p.ends, tonumber(at)
  -- Who knows only the end writes that once more.
  if own ~= ends and own ~= request.p.due then
    request.p.due = own
    write_request(id, request)
  end
  return own < ends and string.format('%.17g', ends) or at
end
