--! keys texts
--! needs texts
--! gives keep_error drop_errors
-- Writes errors as texts.lua reads them.
local SHORT, FIRST_LINE, as_kept = 64, 200, {}

local function split(text)
  local line = text:find('\n', 1, true)
  local beginning = line and line <= FIRST_LINE and text:sub(1, line) or ''
  local rest = text:sub(#beginning + 1)
  if #rest < SHORT then return {'s' .. text} end
  return {'r' .. redis.sha1hex(rest) .. beginning, rest}
end

-- So many ids more, or fewer, have it. Returns the bytes that this takes.
local function refer(key, stored, ids, rest)
  if stored:byte(1) ~= REFERENCE then return 0 end
  local name = name_of(key, stored)
  local left = call('HINCRBY', texts, '#' .. name, ids)
  if rest and left == ids then
    call('HSET', texts, name, rest)
    return #rest
  end
  if left > 0 then return 0 end
  local bytes = call('HSTRLEN', texts, name)
  call('HDEL', texts, name, '#' .. name)
  return -bytes
end

-- Makes it the id's error there. Returns the bytes that this takes.
local function keep_error(key, id, text)
  as_kept[text] = as_kept[text] or split(text)
  local stored, rest = unpack(as_kept[text])
  local old = call('HGET', key, id)
  if old == stored then return 0 end
  call('HSET', key, id, stored)
  local bytes = #stored + refer(key, stored, 1, rest)
  return old and bytes - #old + refer(key, old, -1) or bytes
end

-- The ids have no error there any more. Returns how many had one, and the bytes that this gives back.
local function drop_errors(key, ids)
  local found, bytes, uses = 0, 0, {}
  for _, stored in ipairs(call('HMGET', key, unpack(ids))) do
    if stored then
      local text = stored:sub(1, DIGEST + 1)
      found, bytes, uses[text] = found + 1, bytes + #stored, (uses[text] or 0) + 1
    end
  end
  if found == 0 then return 0, 0 end
  call('HDEL', key, unpack(ids))
  for text, times in pairs(uses) do bytes = bytes - refer(key, text, -times) end
  return found, bytes
end
