--! keys meta
--! needs shard journal in_use
--! gives is_traced trace write_trace
-- The further events of the journal, while an operator wants all of it, until a time.
local LONGEST_TRACE, traces = 86400, nil

local function is_traced()
  if traces == nil then
    local left = (tonumber(call('HGET', meta, 'journal_until') or 0) or 0) - now
    -- A later time was written when the clock was ahead.
    traces = left > 0 and left <= LONGEST_TRACE + 1
  end
  return traces
end

-- As `enter`.
local function trace(kind, item)
  if is_traced() then enter(kind, item) end
end

-- The end of a script that traces; as `write_journal`.
local function write_trace(token, n)
  local ends = not is_traced() and uses('journalling')
  if ends then enter('level', {level = 'trouble', was = 'all'}) end
  write_journal(token, n)
  if not ends then return end
  note_use('journalling', false)
  call('HDEL', meta, 'journal_until')
end
