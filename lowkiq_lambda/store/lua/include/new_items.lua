--! keys rows refs items
--! needs items in_use
-- What a push does for jobs of tasks. Of a packed job: the ref, the length of the label (1 byte), the label.
local new_rows, new_members, new_refs, given_refs = {}, {}, {}, {}

-- {ref, label}, or nil where it was pushed before, by this call too; where what follows begins; and whether it was.
local function read_item(given, at)
  local ref, size = given:sub(at, at + REF - 1), given:byte(at + REF)
  local after = at + REF + 1 + size
  if given_refs[ref] or call('HEXISTS', rows, ref) == 1 then return nil, after, true end
  given_refs[ref] = true
  return {ref, given:sub(at + REF + 1, after - 1)}, after, false
end

-- `number`: the arrival number, or false where another push had the job's key: the item went into that job.
local function note_item(item, id, number)
  local ref, label = unpack(item)
  local status, n = number and 'e' or 'm', #new_rows
  local row = cmsgpack.pack({s = status, i = id, k = #label > 0 and label or nil, n = 0})
  new_rows[n + 1], new_rows[n + 2] = ref, row
  new_members[n + 1], new_members[n + 2] = 0, ref:sub(1, TASK) .. status .. ref:sub(TASK + 1)
  if number then new_refs[#new_refs + 1], new_refs[#new_refs + 2] = number, ref end
end

-- Before the payloads are put, as these may join others.
local function keep_items()
  if #new_rows == 0 then return end
  call('HSET', rows, unpack(new_rows))
  call('ZADD', items, unpack(new_members))
  note_use('tasks', true)
  if #new_refs == 0 then return end
  call('HSET', refs, unpack(new_refs))
  note_use('tracking', true)
end
