--! keys rows items
--! needs in_use
--! gives REF TASK PUT_OFF ended_in is_tracked in_parts is_shared each_ref read_row change_rows
-- The items of tasks. A job that was pushed for a task has a ref, the task (12 bytes) and the item's number (4 bytes):
-- `refs` has those of an entry under its arrival number, one behind the other, with '*' before them where an equal
-- payload joined in that is not tracked. `rows` has of each ref the msgpack of `s`, its status; `i`, the id; `k`, the
-- label; `n`, how often it came to an end of its own; `w`, the first ref of the entry that it went into; `p`, its params, as
-- the push sent them; `f`, true where its task wants to know of a failure; `t`, {when it was pushed, when it began or false, when
-- it ended or false}, these two in milliseconds after the first; `m`, its course: {milliseconds after that, line, ...}, where a line
-- is the number of a reason, or the letter of the status that it got, or 'n', and behind it a text, with its newest
-- time if it comes many times in turn; and `o`, how many other lines were left out. A row of an earlier form has no `t`, and its `m` has texts and numbers alone. `items` is the index of these: task, status, number. A ref without a row is one of a task that is forgotten.
local REF, TASK, PUT_OFF = 16, 12, 4
local AT_ONCE, MOST_LINES, FIRST_LINES = 1000, 49, 9
-- {task = true, ...} of those that had items end; and with 'f' behind it of each that had items fail, if it wants to know of that.
local ended_in = {}

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

local function add_line(row, at, line)
  local course, width = row.m or {}, at and 2 or 1
  if at then course[#course + 1] = at end
  course[#course + 1] = line
  -- With those of a run that was put off: it has begun, and may have noted a text.
  for lines = 1, line == PUT_OFF and 3 or 1 do
    local length, last, are_same = lines * width, #course, true
    for at_last = last, last - length + width, -width do
      are_same = are_same and course[at_last] == course[at_last - length]
    end
    for _ = 1, are_same and length or 0 do table.remove(course, last - 2 * length + 1) end
  end
  if #course > MOST_LINES * width then
    for _ = 1, width do table.remove(course, FIRST_LINES * width + 1) end
    row.o = (row.o or 0) + 1
  end
  row.m = course
end

local function note_course(row, status, message)
  local is_new = status and status ~= row.s
  if not row.t then
    if message then add_line(row, nil, message) end
  elseif is_new or message then
    local at = math.max(0, math.floor((tonumber(ARGV[2]) - row.t[1]) * 1000 + 0.5))
    local is_open = status == 'e' or status == 'r'
    if status == 'r' and not row.t[2] then row.t[2] = at end
    if is_new then row.t[3] = not is_open and at end
    add_line(row, at, type(message) == 'number' and message or (status or 'n') .. (message or ''))
  end
end

local function change_some(some, status, message, amend)
  local changed, left, entered = {}, {}, {}
  for i, packed in ipairs(call('HMGET', rows, unpack(some))) do
    local ref, row = some[i], packed and read_row(packed)
    if row then
      note_course(row, status, message)
      local task, number = ref:sub(1, TASK), ref:sub(TASK + 1)
      if status and row.s ~= status then
        left[#left + 1] = task .. row.s .. number
        entered[#entered + 1], entered[#entered + 2] = 0, task .. status .. number
        row.s = status
        if row.f and (status == 'x' or status == 'f' or status == 'l') then ended_in[task .. 'f'] = true end
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

-- The rows of these refs get the status, and the message, if there is any, and `amend(row)` may change more.
local function change_rows(of, status, message, amend)
  in_parts(of, function(some) change_some(some, status, message, amend) end)
end
