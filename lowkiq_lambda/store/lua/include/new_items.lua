--! keys rows refs items
--! needs items in_use
--! gives refs_with_rows read_item note_item keep_items
-- What a push does for jobs of tasks. Of a packed job: the ref, the length of the label (1 byte), the label; or the ref, MORE, a
-- byte that is 1 where the task wants to know of a failure, the label as above, the length of the params (2 bytes), the params.
local HAS_ITEM, MORE, new_rows, new_members, new_refs = 4, 255, {}, {}, {}

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

-- {ref, label, params, is watched}, or nil where it was pushed before, by this call too; where what follows begins; and whether
-- it was. `known`: refs that were pushed before.
local function read_item(given, at, known)
  local ref, size, watched, params = given:sub(at, at + REF - 1), given:byte(at + REF), false, ''
  at = at + REF + 1
  local has_more = size == MORE
  if has_more then
    watched, size = given:byte(at) == 1, given:byte(at + 1)
    at = at + 2
  end
  local label = given:sub(at, at + size - 1)
  at = at + size
  if has_more then
    size = struct.unpack('>I2', given, at)
    params = given:sub(at + 2, at + 1 + size)
    at = at + 2 + size
  end
  if known[ref] then return nil, at, true end
  known[ref] = true
  return {ref, label, params, watched}, at, false
end

-- `number`: the arrival number, or false where another push had the job's key: the item went into that job; or `ended`
-- says how else it has ended.
local function note_item(item, id, number, ended)
  local ref, label, params, watched = unpack(item)
  local status, n = ended or number and 'e' or 'm', #new_rows
  local row = cmsgpack.pack({
    s = status, i = id, k = #label > 0 and label or nil, n = 0, p = #params > 0 and params or nil, f = watched or nil,
    t = {tonumber(ARGV[2]), false, status ~= 'e' and 0},
  })
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
