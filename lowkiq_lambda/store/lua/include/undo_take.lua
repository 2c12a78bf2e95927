--! keys due jobs box retry
--! needs action records payloads put flight started withdraw page retry_counts trouble forget_errors make_due wait untouched undo_waiting
--! gives take_waiting
-- Payloads that an action has put among those that wait leave them, if they are as the action left them.

local function take_from_box(id, record, row)
  local prefix = box_prefix(id)
  if row.started then
    drop_started(id, record, row.started)
    if not call('ZSCORE', retry, id) then make_due(id) end
  end
  for _, entry in ipairs(row.entries) do box_remove(merge, prefix, entry:sub(1, PLACE), entry:sub(PLACE + 1)) end
  if not started_of(id) and #page(box, id, '', 1, 1) == 0 then return forget_waiting(id) end
end

-- The time, too, that what stays had before the action.
local function leave_as_before(row)
  if not call('HGET', jobs, row.id) then return end
  marking.set_touched(row.id, row.was)
  local at = call('ZSCORE', due, row.id)
  if row.due_before and row.due and tonumber(at) == tonumber(row.due) then wait(row.id, row.due_before) end
end

-- The counts of what has gone go with it; an id of which nothing left has failed begins anew.
local function keep_other_counts(id, counts, gone)
  if not call('HGET', jobs, id) then return end
  local t = read_trouble(id)
  for _, entry in ipairs(gone) do counts[number_of_arrival(entry)] = nil end
  t.retry_counts = nil
  note_counts(id, t, counts, counted_in_flight(id))
  write_trouble(id, t)
  if not call('ZSCORE', retry, id) then forget_errors({id}) end
end

-- `kind`: how that can be undone. Returns the entries, and the progress of a started job, or nil and why not.
local function take_waiting(row, kind)
  local id = row.id
  local record, reason = marking.untouched_since(row)
  if not record then return nil, reason end
  local counts = counts_of(id, read_trouble(id), record)
  keep_waiting(id, row.entries, row.started, row.more or false, kind, row.lies)
  local all, progress = row.entries, nil
  if is_in_box(record) then
    if row.started then
      local entries
      entries, progress = read_handed(row.started, 1)
      all = {unpack(entries)}
      for _, entry in ipairs(row.entries) do all[#all + 1] = entry end
    end
    take_from_box(id, record, row)
  else
    local goes = {}
    for _, entry in ipairs(row.entries) do goes[entry] = true end
    local _, left = payloads.parted(record, function(entry) return goes[entry] end)
    if left then call('HSET', jobs, id, left) else forget_waiting(id) end
  end
  keep_other_counts(id, counts, all)
  leave_as_before(row)
  return all, progress
end
