-- Texts of errors: a long one is kept once for all ids that have it. `errors` and `morgue_errors` hold for an id 's'
-- text, or 'r' digest beginning (its first line, with the line feed, unless that is long). The rest then lies in
-- `texts` under a letter for the hash and the digest; '#' before these counts the ids that refer to it. The hashes
-- share no rest, so that what the morgue takes up is its own.
local SHORT, FIRST_LINE, DIGEST, REFERENCE = 64, 200, 40, ('r'):byte()
local as_kept, rest_of = {}, {}

local function name_of(key, stored)
  return (key == errors and 'w' or 'm') .. stored:sub(2, DIGEST + 1)
end

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

-- The text that is kept so there; false where nothing is.
local function text_of(key, stored)
  if not stored or stored:byte(1) ~= REFERENCE then return stored and stored:sub(2) end
  local name = name_of(key, stored)
  rest_of[name] = rest_of[name] or call('HGET', texts, name) or ''
  return stored:sub(DIGEST + 2) .. rest_of[name]
end

local function error_of(key, id) return text_of(key, call('HGET', key, id)) end
