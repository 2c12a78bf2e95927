--! keys jobs since retry
--! needs raise_marks comes_before flight records put_latest wait
--! gives mark_some mark_done
-- What was done of {id, record, ...} in flight raises the marks of its ids; what waits with a smaller score is superseded.
local AT_ONCE_DONE, FIRST = 1000, 17

local function score_done(record)
  if record:sub(FIRST, FIRST) == 's' then return record:sub(FIRST + 1, FIRST + 8) end
  local _, _, entries = read_flight(record)
  return entries[#entries]:sub(1, 8)
end

local function mark_some(ids, scores)
  local marks = raise_marks(ids, scores)
  for i, record in ipairs(call('HMGET', jobs, unpack(ids))) do
    if record and record:byte(1) ~= SEVERAL then
      local id, place, given = ids[i], of_latest.waiting(ids[i], record)
      if comes_before(place:sub(1, 8), marks[i]) then
        of_latest.supersede_waiting(id, place, given)
        call('HDEL', jobs, id)
        wait_no_more(id)
        for _, key in ipairs({since, retry}) do call('ZREM', key, id) end
      end
    end
  end
end

local function mark_done(claimed_jobs)
  local ids, scores = {}, {}
  for i = 1, #claimed_jobs, 2 do
    ids[#ids + 1], scores[#scores + 1] = claimed_jobs[i], score_done(claimed_jobs[i + 1])
    if #ids == AT_ONCE_DONE then
      mark_some(ids, scores)
      ids, scores = {}, {}
    end
  end
  if #ids > 0 then mark_some(ids, scores) end
end
