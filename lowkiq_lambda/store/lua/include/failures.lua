-- The last failures of an id, {{time, retry_count, the error in brief}, ...}, newest first; the brief is left out where
-- the failure after it had the same. They are kept while the id has an error, be it waiting, in flight or buried: what
-- is found of an id that has none was left by a version that knows no such key.
local FAILURES, NUMBERS = 5, 16

local function failures_of(id)
  local packed = call('HGET', failures, id)
  return packed and cmsgpack.unpack(packed) or {}
end

local function failures_size(noted)
  local bytes = 0
  for _, failure in ipairs(noted) do bytes = bytes + NUMBERS + (failure[3] and #failure[3] or 0) end
  return bytes
end

-- What the bytes of the morgue have grown by in this call.
local morgue_growth = 0

local function count_buried(bytes)
  if bytes ~= 0 then call('HINCRBY', meta, 'morgue_bytes', bytes) end
  morgue_growth = morgue_growth + math.max(0, bytes)
end

-- Before its error is written. The first failure has retry_count 0, as the id's own will be.
local function note_failure(id, record, text)
  local noted, buried = failures_of(id), call('HEXISTS', morgue_errors, id) == 1
  if #noted > 0 and not buried and call('HEXISTS', errors, id) == 0 then noted = {} end
  local bytes, _, retry_count = failures_size(noted), struct.unpack('>dd', record)
  if noted[1] and noted[1][3] == text then noted[1][3] = nil end
  table.insert(noted, 1, {now, retry_count + 1, text})
  noted[FAILURES + 1] = nil
  call('HSET', failures, id, cmsgpack.pack(noted))
  if buried then count_buried(failures_size(noted) - bytes) end
end

-- These ids' errors, with their failures; what lies in the morgue keeps those.
local function forget_errors(ids)
  if drop_errors(errors, ids) == 0 then return end
  if not exists(morgue) then
    if exists(errors) then call('HDEL', failures, unpack(ids)) else call('DEL', failures) end
    return
  end
  local gone = {}
  for i, buried_at in ipairs(call('ZMSCORE', morgue, unpack(ids))) do
    if not buried_at then gone[#gone + 1] = ids[i] end
  end
  if #gone > 0 then call('HDEL', failures, unpack(gone)) end
end
