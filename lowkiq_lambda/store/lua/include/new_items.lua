--! keys rows refs items
--! needs items in_use
--! gives refs_with_rows read_item note_item keep_items
-- What a push does for jobs of tasks. Of a packed job: the ref, the length of the label (1 byte), the label.
local HAS_ITEM, new_rows, new_members, new_refs = 4, {}, {}, {}

-- Of packed jobs, every other one of ARGV from `from` on: the refs that have a row already, {ref = true, ...}.
local function refs_with_rows(from)
  local found, named = {}, {}
  for i = from, #ARGV, 2 do
    local flags = ARGV[i]:byte(1)
    if bit.band(flags, HAS_ITEM) ~= 0 then
      local at = 2 + 8 * bit.band(flags, 1) + 4 * bit.band(flags, 2)
      named[#named + 1] = ARGV[i]:sub(at, at + REF - 1)
    end
  end
  for i, packed in ipairs(#named > 0 and call('HMGET', rows, unpack(named)) or {}) do
    if packed then found[named[i]] = true end
  end
  return found
end

-- {ref, label}, or nil where it was pushed before, by this call too; where what follows begins; and whether it was.
-- `known`: refs that were pushed before.
local function read_item(given, at, known)
  local ref, size = given:sub(at, at + REF - 1), given:byte(at + REF)
  local after = at + REF + 1 + size
  if known[ref] then return nil, after, true end
  known[ref] = true
  return {ref, given:sub(at + REF + 1, after - 1)}, after, false
end

-- `number`: the arrival number, or false where another push had the job's key: the item went into that job; or `ended`
-- says how else it has ended.
local function note_item(item, id, number, ended)
  local ref, label = unpack(item)
  local status, n = ended or number and 'e' or 'm', #new_rows
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
