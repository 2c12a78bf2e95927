--! keys receipts rows timetable served marks_even marks_odd
--! needs cargo shard
--! with tracking items
--! with marks marks
--! gives carry_receipts drop_receipts carry_rows drop_row carry_timetable drop_entry carry_lanes drop_lane
--! gives carry_marks drop_mark
-- The records of a shard beside its jobs. Receipts and counts of revivals may be of any id, so all shards that receive get them.
local PIECE, FOR_ALL = 1000, ''

-- {digest, when it is forgotten, ...}
local function carry_receipts()
  call('ZREMRANGEBYSCORE', receipts, '-inf', now_text)
  local from = 0
  while not is_full() do
    local listed, digests = call('ZRANGE', receipts, from, from + PIECE - 1, 'WITHSCORES'), {}
    if #listed == 0 then return end
    for i = 1, #listed, 2 do digests[#digests + 1] = listed[i] end
    load('receipts', FOR_ALL, cmsgpack.pack(digests), listed, #digests)
    from = from + PIECE
  end
end

local function drop_receipts(_, digests) call('ZREM', receipts, unpack(cmsgpack.unpack(digests))) end

-- act(field, value) on the fields of a hash, from its first on, until the call is full.
local function each_field(key, act)
  local cursor = '0'
  repeat
    local found
    cursor, found = unpack(call('HSCAN', key, cursor, 'COUNT', math.max(1, math.min(PIECE, cargo_records))))
    for i = 1, #found, 2 do act(found[i], found[i + 1]) end
  until cursor == '0' or is_full()
end

-- {ref, row}: rows of items that have ended, and once more those that went with their jobs; or {'v' and task, count}.
local function carry_rows()
  each_field(rows, function(field, packed)
    local row = #field == REF and read_row(packed)
    load('item', row and row.i or FOR_ALL, field, {field, packed}, 1)
  end)
end

local function drop_row(_, field) call('HDEL', rows, field) end

-- {name, record}
local function carry_timetable()
  each_field(timetable, function(name, packed)
    load('entry', cmsgpack.unpack(packed).id or FOR_ALL, name, {name, packed}, 1)
  end)
end

local function drop_entry(_, name) call('HDEL', timetable, name) end

-- {lane, what is known of it}
local function carry_lanes()
  each_field(served, function(lane, packed)
    if lane ~= '\255' then load('lane', lane .. ':', lane, {lane, packed}, 1) end
  end)
end

local function drop_lane(_, lane) call('HDEL', served, lane) end

-- {id, score}
local function carry_marks()
  for _, key in ipairs({marks_even, marks_odd}) do
    each_field(key, function(id) load('mark', id, id, {id, marks_of({id})[1]}, 1) end)
    if is_full() then return end
  end
end

local function drop_mark(_, id)
  call('HDEL', marks_even, id)
  call('HDEL', marks_odd, id)
end
