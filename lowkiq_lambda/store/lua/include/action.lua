--! keys meta
--! needs page free_memory_first earliest_due shard
--! with undo undo_rows
--! gives token merge looked payloads_left bytes_left newer charge old_entries act_on_each
-- An operator's action on ids, in the order given, as far as one call may go. It changes only what the shard had
-- when the operator looked: payloads with a larger arrival number came later.
-- ARGV[4]  token of the call; of an action that can be undone 12 bytes, then what undo_rows.lua has
-- ARGV[5]  merge
-- ARGV[6]  arrival number at the look
-- ARGV[7]  payloads that one call may touch
-- ARGV[8]  bytes that one call may touch
-- ARGV[9]  '', or where to go on within the first id, as the last call said
-- Returns {'OK', changed ids, finished ids, where to go on within the next id or '', sooner}: sooner is 1 when the
--   shard's earliest due time became earlier. Of an action that can be undone also how many of its ids can be, and why
--   others were skipped, {reason, ...}. Where the action has a word for any id, these two, or 0 and {}, and {id, word, ...}.
--   A call that comes twice in a row is answered as the first time.
local token, merge, looked = ARGV[4], ARGV[5], tonumber(ARGV[6])
local payloads_left, bytes_left = tonumber(ARGV[7]), tonumber(ARGV[8])

local function newer(place) return struct.unpack('>I6', place, 9) > looked end

local function charge(payloads, bytes)
  payloads_left, bytes_left = payloads_left - payloads, bytes_left - bytes
end

-- The next payloads that were there at the look, and where there may be more.
local function old_entries(key, id, after)
  local entries, bytes, more = page(key, id, after, math.max(1, payloads_left), math.max(1, bytes_left))
  local old = {}
  for _, entry in ipairs(entries) do
    if not newer(entry) then old[#old + 1] = entry end
  end
  charge(#entries, bytes)
  return old, more
end

-- act(id, after, again) returns whether it changed the id, where there may be more of it, and a word for it if it has one;
-- `again` tells that an earlier call has changed it.
local function act_on_each(first, act)
  local last = call('HGET', meta, 'action')
  last = last and cmsgpack.unpack(last)
  if last and last[1] == token then return last[2] end

  if has_undo then undo_log.begin() end
  free_memory_first()
  local head, changed, finished, resume, words = earliest_due(), 0, 0, ARGV[9], nil
  for i = first, #ARGV do
    if payloads_left < 1 or bytes_left < 1 then break end
    charge(1, 0)
    local again = resume:sub(1, 1) == '1'
    local did, more, word = act(ARGV[i], resume:sub(2), again)
    if did and not again then changed = changed + 1 end
    if word then
      words = words or {}
      words[#words + 1], words[#words + 2] = ARGV[i], word
    end
    resume = more and ((did or again) and '1' or '0') .. more or ''
    if more then break end
    finished = finished + 1
  end
  local earliest = earliest_due()
  local sooner = earliest ~= '' and (head == '' or tonumber(earliest) < tonumber(head))
  local reply = {'OK', changed, finished, resume, sooner and 1 or 0}
  if has_undo then reply[6], reply[7] = undo_log.finish(), undo_log.skipped end
  if words then reply[6], reply[7], reply[8] = reply[6] or 0, reply[7] or {}, words end
  call('HSET', meta, 'now', latest_now, 'action', cmsgpack.pack({token, reply}))
  return reply
end
