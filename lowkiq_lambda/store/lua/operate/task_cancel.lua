--! keys jobs box refs expiries flight meta
--! needs shard action items end_items put records payloads started flight withdraw page make_due journal
--! with requests request_room
-- Takes the items of a task off the payloads that wait under ids. A payload that no other push has brought is deleted; any
-- other stays.
-- ARGV[4..9] and what it returns: include/action.lua; [10] task, 12 bytes, and 'r' if what runs is to stop, too, [11..] ids. The
--   word of an id that runs for the task alone is 'asked' then, or 'full', as in cancel.lua. Or a refusal.
-- A started job of which only a part is the task's stays whole, with its items.
local refused = refusal(ARGV[5])
if refused then return refused end
local cancelled, stops_running = ARGV[10]:sub(1, TASK), has_requests and #ARGV[10] > TASK

-- {the task's refs, those of others}, and whether no other push has brought the payload.
local function refs_by_task(kept)
  local own, others = {}, {}
  for _, ref in ipairs(each_ref(kept)) do
    local list = ref:sub(1, TASK) == cancelled and own or others
    list[#list + 1] = ref
  end
  return own, others, #own > 0 and #others == 0 and not is_shared(kept)
end

local function note_deleted(id, place)
  enter('deleted', {id, place})
  if has_expiry then call('HDEL', expiries, place:sub(9)) end
end

local function kept_of(entry) return call('HGET', refs, entry:sub(9, PLACE)) end

-- Returns whether no push is left that wants its payload.
local function take_off(entry)
  local kept = kept_of(entry)
  local own, others, is_alone = refs_by_task(kept)
  if #own == 0 then return false end
  change_rows(own, 'c')
  if #others == 0 then
    drop_refs({entry:sub(9, PLACE)})
  else
    call('HSET', refs, entry:sub(9, PLACE), (is_shared(kept) and '*' or '') .. table.concat(others))
  end
  return is_alone
end

-- Returns whether the started job went.
local function cancel_started(id, record)
  local given = started_of(id)
  if not given then error('DAMAGED started job') end
  local entries = read_handed(given, 1)
  charge(#entries, #given)
  for _, entry in ipairs(entries) do
    local _, _, is_alone = refs_by_task(kept_of(entry))
    if not is_alone then return false end
  end
  for _, entry in ipairs(entries) do
    take_off(entry)
    note_deleted(id, entry:sub(1, PLACE))
  end
  drop_started(id, record, given)
  make_due(id)
  return true
end

-- As a run that others want too would end for them as well.
local function stop_own_run(id)
  local record = call('HGET', flight, id)
  if not record then return nil end
  local _, _, entries = read_flight(record)
  charge(#entries, #record)
  for _, entry in ipairs(entries) do
    local _, _, is_alone = refs_by_task(kept_of(entry))
    if not is_alone then return nil end
  end
  return ask_holder(id, tonumber(call('HGET', meta, 'arrival')), '')
end

local function take_off_waiting(id, after, again)
  local record = call('HGET', jobs, id)
  if not record then return false end
  local kind = record:byte(1)
  if not is_in_box(record) then
    charge(0, #record)
    return part_record(id, record, take_off, note_deleted)
  end
  local changed = kind == STARTED and after == '' and cancel_started(id, record)
  local entries, bytes, more = page(box, id, after, math.max(1, payloads_left), math.max(1, bytes_left))
  charge(#entries, bytes)
  for _, entry in ipairs(entries) do
    if take_off(entry) then
      box_remove(merge, box_prefix(id), entry:sub(1, PLACE), entry:sub(PLACE + 1))
      note_deleted(id, entry:sub(1, PLACE))
      changed = true
    end
  end
  if not more and (changed or again) and call('HGET', jobs, id):byte(1) == SEVERAL then
    if #page(box, id, '', 1, 1) == 0 then forget_waiting(id) else begin_anew(id) end
  end
  return changed, more
end

local reply = act_on_each(11, function(id, after, again)
  if not is_tracked() then return false end
  local changed, more = take_off_waiting(id, after, again)
  return changed, more, stops_running and not more and stop_own_run(id) or nil
end)
write_journal(token)
return reply
