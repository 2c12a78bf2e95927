--! keys jobs meta
--! needs touched payloads flight started retry_counts trouble put_row
--! gives marking
-- Whether what an action has put among what waits is as it left it: neither run, failed, merged nor touched since.
local marking = {}

local arrival

-- The place of the call among the pushes: for an operator who looked before, it is a push.
function marking.stamp()
  arrival = arrival or struct.pack('>I6', call('HINCRBY', meta, 'arrival', 1))
  return arrival
end

function marking.set_touched(id, touched)
  local record = call('HGET', jobs, id)
  if not record then return end
  call('HSET', jobs, id, is_in_box(record) and record:sub(1, 1) .. touched or record_of(entries_of(record), touched))
end

-- `row`: `entries` and `started`, as they were left; `stamp`, the last push then; and `counts` of them.
-- Returns the record of the id, or nil and why not.
function marking.untouched_since(row)
  local id = row.id
  local record, all = call('HGET', jobs, id), {unpack(row.entries)}
  if not record then return nil, 'ran meanwhile' end
  if row.started then
    if started_of(id) ~= row.started then return nil, 'ran meanwhile' end
    for _, entry in ipairs((read_handed(row.started, 1))) do all[#all + 1] = entry end
  end
  for _, entry in ipairs(row.entries) do
    if not lies_in(record, id, entry) then return nil, 'ran meanwhile' end
  end
  if touched_of(record) ~= row.stamp then return nil, 'changed since' end
  local t, expected = read_trouble(id), {}
  local counts = counts_of(id, t, record)
  for i = 1, row.counts and #row.counts or 0, 2 do expected[row.counts[i]] = row.counts[i + 1] end
  for _, entry in ipairs(all) do
    local number = number_of_arrival(entry)
    if (counts[number] or -1) > (expected[number] or -1) then return nil, 'ran meanwhile' end
  end
  -- A holder that died had them.
  if t.abandoned and not row.abandoned then return nil, 'ran meanwhile' end
  return record
end
