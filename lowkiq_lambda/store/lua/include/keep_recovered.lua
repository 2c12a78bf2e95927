--! keys runs
--! needs keep_runs
--! gives keep_recovered
-- A recovery among the runs: those whose holder died, as {owner, token, since, id, outcome, ...}.
-- Ids are cut as store/shard/run_entries.py does it.
local MOST_ID_BYTES, ID_KEPT = 200, 150

local function short_id(id)
  if #id <= MOST_ID_BYTES then return id end
  -- No part of a character.
  return (id:sub(1, ID_KEPT):gsub('[\192-\255]?[\128-\191]*$', '')) .. redis.sha1hex(id)
end

-- `outcomes`: of those that were not just recovered, by id.
local function keep_recovered(owner, token, since, ids, outcomes, most)
  local entry = {owner or '', token or '', since or ''}
  local count = math.min(#ids, most)
  for i = 1, count do
    entry[#entry + 1] = short_id(ids[i])
    entry[#entry + 1] = outcomes[ids[i]] or 'recovered'
  end
  if keep_entry('l', count, cmsgpack.pack(entry)) and call('TTL', runs) < 0 then
    call('EXPIRE', runs, MOST_DAYS * 86400)
  end
end
