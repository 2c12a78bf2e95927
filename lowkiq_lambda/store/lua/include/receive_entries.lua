--! keys refs rows items headers_even headers_odd
--! needs in_use
--! with tracking items
--! with headers headers
--! gives receive_rows receive_what_entries_have
-- What comes with payloads, before these are put, as they may join others. A second copy must not join twice: of items
-- their rows tell that they were received, of headers a field that no arrival number is.
local RECEIVED = 'r'

-- Those of {ref, row, ...} that are not there yet are written. Returns {ref = true, ...} of them.
local function receive_rows(given)
  local new, fields, members = {}, {}, {}
  for i = 1, #given, 2 do
    local ref, packed = given[i], given[i + 1]
    local row = read_row(packed)
    if row and call('HEXISTS', rows, ref) == 0 then
      new[ref] = true
      fields[#fields + 1], fields[#fields + 2] = ref, packed
      members[#members + 1], members[#members + 2] = 0, ref:sub(1, TASK) .. row.s .. ref:sub(TASK + 1)
    end
  end
  in_parts(fields, function(some) call('HSET', rows, unpack(some)) end)
  in_parts(members, function(some) call('ZADD', items, unpack(some)) end)
  if #fields > 0 then note_use('tasks', true) end
  return new
end

local function receive_refs(given, new)
  for i = 1, #given, 2 do
    local come = {}
    for _, ref in ipairs(each_ref(given[i + 1])) do
      if new[ref] then come[#come + 1] = ref end
    end
    if #come > 0 then
      local star = is_shared(given[i + 1]) and '*' or ''
      call('HSET', refs, given[i], star .. table.concat(come))
      note_use('tracking', true)
    end
  end
end

local function receive_headers(given)
  for i = 1, #given, 2 do
    local mark = RECEIVED .. given[i]
    if call('HEXISTS', headers_even, mark) + call('HEXISTS', headers_odd, mark) == 0 then
      write_headers({given[i], given[i + 1], mark, ''})
    end
  end
  note_use('headers', true)
end

local function receive_what_entries_have(row)
  if row.rows then receive_refs(row.refs, receive_rows(row.rows)) end
  if row.headers then receive_headers(row.headers) end
end
