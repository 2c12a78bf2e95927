--! keys due jobs box seen since retry errors trouble suspects groups flight morgue morgue_payloads morgue_errors
--! keys meta lease pushes_even pushes_odd failures texts journal damaged
--! needs shelf shard sound exists held work
--! gives KEYS_OF_A_SHARD take_other_types keep check_meta check_lease
-- The fields of meta, the types of all keys, and the lease. An impossible value is set aside, and derived anew if the shard
-- needs one.
-- {name, key, type, as TYPE has it}
local KEYS_OF_A_SHARD = {
  {'due', due, 'zset'}, {'jobs', jobs, 'hash'}, {'box', box, 'zset'}, {'seen', seen, 'hash'},
  {'since', since, 'zset'}, {'retry', retry, 'zset'}, {'errors', errors, 'hash'}, {'trouble', trouble, 'hash'},
  {'suspects', suspects, 'zset'}, {'groups', groups, 'hash'}, {'flight', flight, 'hash'},
  {'morgue', morgue, 'zset'}, {'morgue_payloads', morgue_payloads, 'zset'}, {'morgue_errors', morgue_errors, 'hash'},
  {'meta', meta, 'hash'}, {'lease', lease, 'string'}, {'pushes_even', pushes_even, 'hash'},
  {'pushes_odd', pushes_odd, 'hash'}, {'failures', failures, 'hash'}, {'texts', texts, 'hash'},
  {'journal', journal, 'stream'}, {'damaged', damaged, 'list'},
}
local TIMES = {
  'until', 'acquired_at', 'now', 'last_score', 'max_len', 'flight_since', 'woken_until', 'paused_until',
  'ttl', 'journal_until', 'still_until', 'closed_at', 'refused_at', 'marks_since', 'timing_from',
}
local COUNTS = {
  'token', 'call', 'arrival', 'least_version', 'morgue_bytes', 'generation', 'push_minute', 'push_turns', 'done', 'retried',
  'dead', 'rejected', 'returned', 'suspected', 'checkpointed', 'recovered', 'trimmed', 'damaged', 'damaged_bytes', 'limited',
  'receipts_trimmed', 'blocked', 'superseded', 'discarded', 'expired', 'cancelled', 'journal_seq', 'receiving', 'marks_turns', 'above',
  'runs', 'runs_bytes', 'runs_lost', 'runs_dropped',
}
local ELEMENTS, ARRIVALS_A_SECOND, FOREVER = 1000, 10000, '253402300799'

-- The first of what lies in a key of another type, {name or '', value, ...}, and how much that is of it.
local function elements_of(key, kind)
  local given, of = {}, 0
  if kind == 'string' then return {'', call('GETRANGE', key, 0, LARGEST)}, 1, 1 end
  if kind == 'list' or kind == 'set' then
    of = call(kind == 'list' and 'LLEN' or 'SCARD', key)
    local values = kind == 'list' and call('LRANGE', key, 0, ELEMENTS - 1) or call('SSCAN', key, 0, 'COUNT', ELEMENTS)[2]
    for _, value in ipairs(values) do
      given[#given + 1] = ''
      given[#given + 1] = value
    end
  elseif kind == 'hash' then
    of, given = call('HLEN', key), call('HSCAN', key, 0, 'COUNT', ELEMENTS)[2]
  elseif kind == 'zset' then
    of, given = call('ZCARD', key), call('ZRANGE', key, 0, ELEMENTS - 1, 'WITHSCORES')
  end
  return given, #given / 2, of
end

-- {name, {name or '', value, ...}, why} of each key that had another type, and is gone now.
local function take_other_types()
  local taken = {}
  for _, each in ipairs(KEYS_OF_A_SHARD) do
    local name, key, wanted = unpack(each)
    local kind = call('TYPE', key).ok
    if kind ~= 'none' and kind ~= wanted then
      local given, some, all = elements_of(key, kind)
      taken[#taken + 1] = {name, given, 'the key is a ' .. kind .. (some < all and ', and larger than this' or '')}
      call('UNLINK', key)
    end
  end
  return taken
end

-- The holder's writes are refused, as an operator's `evict` does it.
local function put_away_holder()
  local nonce = call('HGET', meta, 'nonce') or ''
  if nonce:sub(1, 8) ~= 'evicted ' then call('HSET', meta, 'abandoned', 1, 'nonce', 'evicted ' .. nonce) end
end

-- No process may take the shard before its holder, if there is one, has stopped.
local function hold_off(ttl)
  local left = call('PTTL', lease) / 1000
  call('HSET', meta, 'until', string.format('%.6f', now + (left > 0 and math.min(left, longest_held(ttl)) or ttl)))
end

-- After all keys can be written.
local function keep(taken, ttl)
  for _, one in ipairs(taken) do
    for i = 1, #one[2], 2 do set_aside(one[1], one[2][i], one[2][i + 1], one[3]) end
    if #one[2] == 0 then set_aside(one[1], '', '', one[3]) end
    if one[1] == 'lease' then call('SET', lease, 'damaged', 'PX', math.ceil(ttl * 1000)) end
    if one[1] == 'meta' then
      hold_off(ttl)
      call('HSET', meta, 'arrival', string.format('%.0f', now * ARRIVALS_A_SECOND))
    end
  end
end

local function derive(field, value, ttl)
  if field == 'token' or field == 'call' then put_away_holder() end
  if field == 'until' then hold_off(ttl) end
  if field == 'arrival' then call('HSET', meta, field, string.format('%.0f', now * ARRIVALS_A_SECOND)) end
  if field == 'morgue_bytes' or field == 'limited' then call('HSET', meta, field, 0) end
  if field == 'paused_until' and tonumber(value) == math.huge then call('HSET', meta, field, FOREVER) end
end

local function check_field(field, is_sound, ttl)
  local value = call('HGET', meta, field)
  if not value or is_sound(value) then return true end
  call('HDEL', meta, field)
  set_aside('meta', field, value, 'no value that the field can have')
  derive(field, value, ttl)
  return false
end

local CLAIM_KINDS = {DUE = true, LONE = true, TOGETHER = true, CHARGE = true, REST = true}

-- Whether the bytes of the morgue have to be counted anew.
local function check_meta(ttl)
  local recounts = false
  -- The counts that setting aside needs come first.
  for i = #COUNTS, 1, -1 do
    local is_right = check_field(COUNTS[i], whole, ttl)
    if COUNTS[i] == 'morgue_bytes' then recounts = not is_right end
  end
  for _, field in ipairs(TIMES) do check_field(field, finite, ttl) end
  -- As a push needs them.
  check_field('last_score', function(value) return tonumber(value) < 2 ^ 53 end, ttl)
  check_field('arrival', function(value) return tonumber(value) < 2 ^ 48 end, ttl)
  check_field('max_len', function(value) return tonumber(value) < 2 ^ 53 end, ttl)
  check_field('recovery', function(value)
    local answer = table_in(value)
    return answer and type(answer[1]) == 'number' and type(answer[2]) == 'table' and (answer[3] == nil or type(answer[3]) == 'string')
  end, ttl)
  check_field('merge', function(value) return value == 'min' or value == 'max' or value == 'never' or value == 'latest' end, ttl)
  for _, field in ipairs({'action', 'cancelled_by'}) do
    check_field(field, function(value)
      local answer = table_in(value)
      return answer and type(answer[1]) == 'string' and type(answer[2]) == 'table'
    end, ttl)
  end
  check_field('kin', function(value) return value:find('^%d+ %d+ %d+$') end, ttl)
  check_field('work', function(value)
    local parts = {pcall(work_of, value)}
    for i = 2, 7 do if not (parts[1] and parts[i] >= 0 and parts[i] < math.huge) then return false end end
    return true
  end, ttl)
  check_field('pace', function(value)
    local count = 0
    for number in value:gmatch('%S+') do
      if not number:find('^%d+%.?%d*$') then return false end
      count = count + 1
    end
    return count == 4 or count == 6 or count == 9 or count == 11
  end, ttl)
  local kind, token, nonce, held_until = unpack(call('HMGET', meta, 'claim_kind', 'token', 'nonce', 'until'))
  if exists(flight) and not CLAIM_KINDS[kind or ''] then
    call('HSET', meta, 'claim_kind', 'DUE')
    note_repair('meta', 'claim_kind', 'what is in flight is taken for a claim of due ids')
  end
  if token and not nonce then put_away_holder() end
  if token and not held_until then hold_off(ttl) end
  return recounts
end

-- Cuts a lease that is longer than a lease can be, on a shard without a holder: `acquire` cuts those of holders.
local function check_lease(ttl)
  local is_known, left = call('HEXISTS', meta, 'ttl') == 1, call('PTTL', lease)
  if left == -1 or not is_known and left > longest_held(ttl) * 1000 then
    call('PEXPIRE', lease, math.ceil(ttl * 1000))
    note_repair('lease', '', left == -1 and 'the key had no time to live' or 'the key had too long a time to live')
  end
  if not is_known then
    check_field('until', function(value) return tonumber(value) - now <= longest_held(ttl) end, ttl)
  end
end
