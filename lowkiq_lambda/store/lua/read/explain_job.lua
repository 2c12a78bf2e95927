--! keys due jobs since retry trouble suspects flight morgue morgue_errors errors meta debouncing lines lanes expiries requests
--! needs details failures progress records started flight oldest_entry
--! with requests shown_requests
--! with debouncing debouncing
--! with tenants lanes
-- What decides when an id runs, read only.
-- ARGV[4]  id
-- Returns {details of the shard, due_at or '', since or '', ids that come before it, retry_count or '', of suspects
--   alone those that come before it or '' where it is none, its trouble (msgpack) or '', '1' if it is in flight, else
--   '', time of its last death or '', '1' if the shard is closed, else '', least version or '', its progress or '',
--   the latest time up to which it waits for more pushes or '', '1' where an operator has set limits of its queue, else '',
--   {}, or of its tenant {from when on it is served, tenants that come first, ids of it that come before, what `served` notes of it},
--   {{time, retry_count, the error in brief, the rule that decided or ''}, ...} of its last failures, the newest first,
--   what operators want of it, as include/shown_requests.lua has that,
--   when its oldest payload that waits, or else is in flight, expires, or '', or
--   '?' where the shard uses expiries or requests and their key was not passed}.
local id = ARGV[4]
local closed, least_version, limited, in_use = unpack(call('HMGET', meta, 'closed', 'least_version', 'limited', 'in_use'))
local due_at, rank, ahead = call('ZSCORE', due, id), call('ZRANK', suspects, id), 0
-- Suspects go first, those that are due later too.
if due_at then ahead = call('ZRANK', due, id) + call('ZCOUNT', suspects, '(' .. due_at, '+inf') end
for _, other in ipairs(suspects_in_flight()) do
  if rank and call('ZRANK', suspects, other) < rank then rank = rank - 1 end
  if due_at and tonumber(call('ZSCORE', suspects, other)) > tonumber(due_at) then ahead = ahead - 1 end
end
local record, flown = call('HGET', jobs, id), call('HGET', flight, id)
local given, progress = record and record:byte(1) == STARTED and started_of(id)
if given then progress = read_progress(given, 1) end
if flown then progress = read_progress(flown, HANDED) end
local latest = debouncing and due_at and debounced_until(id, due_at)
local of_tenant = {}
if lines and due_at then
  local lane = lane_of(id)
  local prefix, from = lane_prefix(lane), call('ZSCORE', lanes, lane)
  local before = call('ZLEXCOUNT', lines, '[' .. prefix, '(' .. prefix .. time_bytes(tonumber(due_at)) .. id)
  of_tenant = {from or '', from and call('ZCOUNT', lanes, '-inf', '(' .. from) or 0, before, cmsgpack.pack(read_lane(lane))}
end
local oldest = has_expiry and record and oldest_entry(id, record)
if has_expiry and flown and not record then
  local _, _, entries = read_flight(flown)
  oldest = entries[1]
end
local packed = oldest and call('HGET', expiries, oldest:sub(9, PLACE))
local expires_at = packed and string.format('%.17g', (struct.unpack('>d', packed)))
local used = in_use or ''
local lacks_a_key = not has_expiry and used:find('expiry', 1, true) or not has_requests and used:find('requests', 1, true)
local failed, brief = {}, ''
-- What is noted of an id without an error counts no more: include/failures.lua.
if call('HEXISTS', errors, id) + call('HEXISTS', morgue_errors, id) > 0 then
  for i, noted in ipairs(failures_of(id)) do
    brief = noted[3] or brief
    failed[i] = {string.format('%.17g', noted[1]), string.format('%.17g', noted[2]), brief, noted[4] or ''}
  end
end
return {
  shard_details(),
  due_at or '', call('ZSCORE', since, id) or '', ahead,
  call('ZSCORE', retry, id) or '', rank or '', call('HGET', trouble, id) or '',
  call('HEXISTS', flight, id) == 1 and '1' or '', call('ZSCORE', morgue, id) or '',
  closed and '1' or '', least_version or '', progress or '', latest and string.format('%.17g', latest) or '',
  limited and '1' or '',
  of_tenant,
  failed,
  has_requests and shown_requests(id, call('HGET', requests, id)) or {},
  lacks_a_key and '?' or expires_at or '',
}
