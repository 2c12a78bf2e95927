--! keys journal meta
--! needs shard
--! gives MOST_IN_ENTRY enter write_journal
-- The journal: the last events of the shard, in their order. An entry is kind, time, token, call and body, the msgpack of
-- a list of items; docs/journal.md has the kinds. Entries are numbered by the shard, as its clock may go back.
local MOST_IN_ENTRY = 64
local MOST_ENTRIES, entered = 2000, {}

-- Notes an item, {id, place, ...}, where a table is kept as it is, or a map; `write_journal` writes what was noted.
local function enter(kind, item)
  local last = entered[#entered]
  if not last or last[1] ~= kind or #last[2] == MOST_IN_ENTRY then
    last = {kind, {}}
    entered[#entered + 1] = last
  end
  last[2][#last[2] + 1] = item
end

local function score_of(place)
  local high, low = struct.unpack('>I4I4', place)
  if high >= 2 ^ 31 then return (struct.unpack('>d', struct.pack('>I4', high - 2 ^ 31) .. place:sub(5, 8))) end
  return (struct.unpack('>d', struct.pack('>I4I4', 2 ^ 32 - 1 - high, 2 ^ 32 - 1 - low)))
end

-- With each place as two numbers, its score and its arrival number: texts of a msgpack are UTF-8.
local function readable(item)
  if not item[1] then return item end
  local listed = {item[1]}
  for i = 2, #item do
    local is_place = type(item[i]) == 'string'
    listed[#listed + 1] = is_place and score_of(item[i]) or item[i]
    if is_place then listed[#listed + 1] = (struct.unpack('>I6', item[i], 9)) end
  end
  return listed
end

-- A job's way must not hang on the log of it: a stream that takes no entry (its numbers were lost with meta) is begun
-- anew, and a key of another type is left to `repair`.
local function append(...)
  local number = call('HINCRBY', meta, 'journal_seq', 1)
  local added = redis.pcall('XADD', journal, 'MAXLEN', '~', MOST_ENTRIES, number .. '-0', ...)
  if type(added) == 'table' and call('TYPE', journal).ok == 'stream' then
    call('UNLINK', journal)
    redis.pcall('XADD', journal, number .. '-0', ...)
  end
end

-- Never the first write of a script, as that one decides whether memory has room. `token` and `n`: of the holder, and
-- its call; or of who else asked for it.
local function write_journal(token, n)
  for _, entry in ipairs(entered) do
    local kind, items = unpack(entry)
    for i, item in ipairs(items) do items[i] = readable(item) end
    append('kind', kind, 'time', now_text, 'token', token or '', 'call', n or '', 'body', cmsgpack.pack(items))
  end
  entered = {}
end
