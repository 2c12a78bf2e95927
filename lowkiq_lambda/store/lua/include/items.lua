--! keys rows items
--! needs in_use
--! gives REF TASK is_tracked in_parts is_shared each_ref read_row change_rows
-- The items of tasks. A job that was pushed for a task has a ref, the task (12 bytes) and the item's number (4 bytes):
-- `refs` has those of an entry under its arrival number, one behind the other, with '*' before them where an equal
-- payload joined in that is not tracked. `rows` has of each ref the msgpack of `s`, its status; `i`, the id; `k`, the
-- label; `n`, how often it came to an end of its own; `m`, its last messages; `w`, the first ref of the entry that it
-- went into. `items` is the index of these: task, status, number. A ref without a row is one of a task that is forgotten.
local REF, TASK, AT_ONCE = 16, 12, 1000

local function is_tracked() return uses('tracking') end

local function in_parts(list, act)
  for from = 1, #list, AT_ONCE do act({unpack(list, from, math.min(#list, from + AT_ONCE - 1))}) end
end

local function is_shared(kept) return kept and #kept % REF == 1 end

local function each_ref(kept)
  local each = {}
  for at = is_shared(kept) and 2 or 1, kept and #kept or 0, REF do each[#each + 1] = kept:sub(at, at + REF - 1) end
  return each
end

local function read_row(packed)
  local is_sound, row = pcall(cmsgpack.unpack, packed)
  return is_sound and type(row) == 'table' and type(row.s) == 'string' and row or nil
end

local function change_some(some, status, amend)
  local changed, left, entered = {}, {}, {}
  for i, packed in ipairs(call('HMGET', rows, unpack(some))) do
    local ref, row = some[i], packed and read_row(packed)
    if row then
      if status and row.s ~= status then
        local task, number = ref:sub(1, TASK), ref:sub(TASK + 1)
        left[#left + 1] = task .. row.s .. number
        entered[#entered + 1], entered[#entered + 2] = 0, task .. status .. number
        row.s = status
      end
      if amend then amend(row) end
      changed[#changed + 1], changed[#changed + 2] = ref, cmsgpack.pack(row)
    end
  end
  if #changed > 0 then call('HSET', rows, unpack(changed)) end
  if #left == 0 then return end
  call('ZREM', items, unpack(left))
  call('ZADD', items, unpack(entered))
end

-- The rows of these refs get the status, if one is given, and `amend(row)` may change more.
local function change_rows(of, status, amend)
  in_parts(of, function(some) change_some(some, status, amend) end)
end
