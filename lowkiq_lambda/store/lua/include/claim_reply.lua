--! keys errors trouble flight meta
--! needs exists texts
--! with tracking flown_items
--! with headers claim_entries
--! with expiry claim_entries
--! gives values_of claim_reply claim_again
-- The claim as the holder gets it.
local function values_of(key, command, ids)
  if not exists(key) then return {} end
  return call(command, key, unpack(ids))
end

local function troubles_of(ids)
  local found = {}
  if exists(trouble) then
    for i, packed in ipairs(call('HMGET', trouble, unpack(ids))) do
      if packed then
        found[#found + 1] = ids[i]
        found[#found + 1] = packed
      end
    end
  end
  return found
end

-- As claim returns it.
local function claim_reply(kind, claimed_jobs, charge, tracked)
  local ids, errors_of_ids = {}, {}
  for i = 1, #claimed_jobs, 2 do ids[#ids + 1] = claimed_jobs[i] end
  for i, stored in ipairs(values_of(errors, 'HMGET', ids)) do
    if stored then
      errors_of_ids[#errors_of_ids + 1] = ids[i]
      errors_of_ids[#errors_of_ids + 1] = text_of(errors, stored)
    end
  end
  return {kind, claimed_jobs, errors_of_ids, troubles_of(ids), charge or '', tracked}
end

-- The claim in flight once more, for a call whose answer was lost; it is empty where all of it was set aside since.
local function claim_again()
  if not exists(flight) then return {'DUE', {}, {}, {}, ''} end
  local kind, charge = unpack(call('HMGET', meta, 'claim_kind', 'claim_charge'))
  local claimed_jobs = call('HGETALL', flight)
  local reply = claim_reply(kind, claimed_jobs, charge, has_tracking and mark_flown(claimed_jobs) or nil)
  return (has_headers or has_expiry) and with_what_entries_have(reply) or reply
end
