-- The last failures of an id, {{time, retry_count, beginning of the error}, ...}, newest first. They are kept while the
-- id has an error, be it waiting, in flight or buried: what is found of an id that has none was left by a version
-- that knows no such key.
local FAILURES = 5

local function failures_of(id)
  local packed = call('HGET', failures, id)
  return packed and cmsgpack.unpack(packed) or {}
end

-- Before its error is written. The first failure has retry_count 0, as the id's own will be.
local function note_failure(id, record, text)
  local noted = failures_of(id)
  if #noted > 0 and call('HEXISTS', errors, id) + call('HEXISTS', morgue_errors, id) == 0 then noted = {} end
  local _, retry_count = struct.unpack('>dd', record)
  table.insert(noted, 1, {now, retry_count + 1, text})
  noted[FAILURES + 1] = nil
  call('HSET', failures, id, cmsgpack.pack(noted))
end

-- These ids' errors, with their failures; what lies in the morgue keeps those.
local function forget_errors(ids)
  if call('HDEL', errors, unpack(ids)) == 0 then return end
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
