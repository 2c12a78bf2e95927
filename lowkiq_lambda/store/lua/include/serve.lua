--! keys served
--! needs shard lanes spend
--! gives BEGUN serve note_ended
-- What a claim and a settling note of lanes. An id that was claimed begins before it is settled. So it goes into the log of
-- its lane at the time of its settling, or of its recovery, which is never too early; until then it is `begun`, and
-- BEGUN lists the lanes that have such ids.
local BEGUN = '\255'

-- What the log says from now on.
local function note_rest(known, rate)
  local log, ids, seconds = known.log, unpack(rate)
  local left = left_of(log, ids, seconds, now) - (known.begun or 0)
  -- An id that has begun and has not ended leaves the log no sooner.
  known.kept = (known.begun and now or log[#log - 1] or 0) + seconds
  known.rests = left < 1 and (known.begun and now + seconds or free_at(log, left, seconds)) or nil
end

-- A lane that was served comes behind all lanes that wait.
local function serve(claimed_jobs, rate)
  local taken, names = {}, {}
  for i = 1, #claimed_jobs, 2 do
    local lane = lane_of(claimed_jobs[i])
    if not taken[lane] then names[#names + 1] = lane end
    taken[lane] = (taken[lane] or 0) + 1
  end
  for _, lane in ipairs(names) do
    local known = read_lane(lane)
    known.at = due_by
    if rate then
      known.log, known.begun = known.log or {}, (known.begun or 0) + taken[lane]
      note_rest(known, rate)
    end
    set_served_from(lane, known)
  end
  if rate then call('HSET', served, BEGUN, cmsgpack.pack(names)) end
end

-- Nothing is in flight any more.
local function note_ended(rate)
  local names = call('HGET', served, BEGUN)
  if not names then return end
  for _, lane in ipairs(cmsgpack.unpack(names)) do
    local known = read_lane(lane)
    if rate then
      known.log = known.log or {}
      -- Later than any caller's clock can be: each knows the server's time within half a round trip.
      if known.begun then spend(known.log, rate[2], tonumber(latest_now) + NEAR, known.begun) end
      known.begun = nil
      note_rest(known, rate)
    else
      known.log, known.begun, known.kept, known.rests = nil, nil, nil, nil
    end
    set_served_from(lane, known)
  end
  call('HDEL', served, BEGUN)
end
