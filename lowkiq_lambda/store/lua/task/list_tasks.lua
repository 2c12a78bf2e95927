--! keys task_records task_expiry
-- Tasks with their records, by when they are to be forgotten, the latest first, read only.
-- ARGV[4]  the time of the last one of the page before, or '+inf'
-- ARGV[5]  its id, or ''
-- ARGV[6]  how many
-- Returns {{id, when it is to be forgotten, record, ...}}.
local latest, after, most = ARGV[4], ARGV[5], tonumber(ARGV[6])
local page, offset = {}, 0
while #page < 3 * most do
  local found = call('ZRANGE', task_expiry, latest, '-inf', 'BYSCORE', 'REV', 'LIMIT', offset, most, 'WITHSCORES')
  if #found == 0 then break end
  for i = 1, #found, 2 do
    local id, expires_at = found[i], found[i + 1]
    -- Those of one time are in descending order.
    local is_next = after == '' or tonumber(expires_at) ~= tonumber(latest) or id < after
    local record = is_next and #page < 3 * most and call('HGET', task_records, id)
    if record then page[#page + 1], page[#page + 2], page[#page + 3] = id, expires_at, record end
  end
  offset = offset + #found / 2
end
return {page}
