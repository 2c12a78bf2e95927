--! keys refs
--! needs items
--! gives REASON arrivals_of refs_at
--! gives mark_kept mark_items
-- What becomes of the items of entries. A message is a text, as errors are kept, or the number of a reason.
-- One name for all of them: a function may reach 60 names outside of it.
local REASON = {
  IN_COMPANY = 1, INTERRUPTED = 2, PROCESS_ENDED = 3, PUT_OFF = PUT_OFF, KILLED = 5, REQUEUED = 6, BLOCKED = 7, WITH_HEAD = 8,
  EXPIRED = 9, EDITED = 10, PUT_BACK = 11,
}

local function arrivals_of(entries)
  local arrivals = {}
  for i, entry in ipairs(entries) do arrivals[i] = entry:sub(9, 14) end
  return arrivals
end

-- {what is kept under each, or false, ...}
local function refs_at(arrivals)
  local found = {}
  in_parts(arrivals, function(some)
    for _, kept in ipairs(call('HMGET', refs, unpack(some))) do found[#found + 1] = kept end
  end)
  return found
end

-- What is kept under arrival numbers, `kept` as refs_at returns it, gets the status; nil: only the message.
local function mark_kept(kept, status, message)
  local of = {}
  for _, one in ipairs(kept) do
    for _, ref in ipairs(each_ref(one)) do
      of[#of + 1] = ref
      if status and status ~= 'e' and status ~= 'r' then ended_in[ref:sub(1, TASK)] = true end
    end
  end
  local has_run = status == 'd' or status and type(message) == 'string'
  change_rows(of, status, message, has_run and function(row) row.n = (row.n or 0) + 1 end)
end

local function mark_items(arrivals, status, message)
  if is_tracked() then mark_kept(refs_at(arrivals), status, message) end
end
