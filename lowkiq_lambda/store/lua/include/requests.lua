--! keys requests flight suspects meta
--! needs in_use shard
--! gives requested
-- Requests of operators for single ids: id to a msgpack map of `c`, a cancel, while the id is in flight: {at, by, upto, error},
-- for payloads with arrival numbers up to `upto`, which go to the morgue where there is an `error`; and of `p`, a pause: {at,
-- by, ends, due, suspect}: until `ends` the id is due no sooner, `due` is the time that it would have, and `suspect` says that
-- it is to run alone.
-- A paused id waits until the end of its pause, as wait.lua asks here for each time that is written.
local requested = {}

function requested.of(id)
  local packed = call('HGET', requests, id)
  return packed and cmsgpack.unpack(packed)
end

function requested.write(id, request)
  if next(request) then
    call('HSET', requests, id, cmsgpack.pack(request))
    return note_use('requests', true)
  end
  if call('HDEL', requests, id) == 1 and call('EXISTS', requests) == 0 then note_use('requests', false) end
end

-- Its request, while the pause lasts; else nil.
function requested.pause_of(id)
  local request = requested.of(id)
  return request and request.p and request.p.ends > now and request or nil
end

-- When the id is due that would be due at `at`, which is noted.
function requested.held_back(id, at)
  local request = requested.pause_of(id)
  if not request then return at end
  local ends, own = request.p.ends, tonumber(at)
  -- A caller that knows only the end writes that once more.
  if own ~= ends and own ~= request.p.due then
    request.p.due = own
    requested.write(id, request)
  end
  return own < ends and string.format('%.17g', ends) or at
end

-- Ends the pauses of ids that are about to be claimed. Returns whether any of them is to run alone: then it comes first.
function requested.end_pauses(ids)
  local any = false
  if call('EXISTS', requests) == 0 then return any end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    local request = packed and cmsgpack.unpack(packed) or {}
    local pause = request.p and request.p.ends <= due_by and request.p
    if pause and pause.suspect then
      call('ZADD', suspects, now, ids[i])
      any = true
    end
    -- A cancel concerns what is in flight, and this is not.
    if pause or request.c then
      request.c = nil
      if pause then request.p = nil end
      requested.write(ids[i], request)
    end
  end
  return any
end

-- {id, 'c' or 'p', ...}: the requests of ids in flight, for their holder; nil if there are none.
function requested.in_flight()
  if call('EXISTS', requests) == 0 then return nil end
  local ids, wanted = call('HKEYS', flight), {}
  if #ids == 0 then return nil end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    if packed then wanted[#wanted + 1], wanted[#wanted + 2] = ids[i], cmsgpack.unpack(packed).c and 'c' or 'p' end
  end
  return #wanted > 0 and wanted or nil
end

-- Forgets the cancels of ids that are done.
function requested.forget_cancels(ids)
  if call('EXISTS', requests) == 0 then return end
  for i, packed in ipairs(call('HMGET', requests, unpack(ids))) do
    local request = packed and cmsgpack.unpack(packed)
    if request and request.c then
      request.c = nil
      requested.write(ids[i], request)
    end
  end
end

-- Adds the requests to the reply to the holder's call `n`, which has two parts before them. `cancelled`: the ids that
-- the call has cancelled; nil for a repeat, as these were noted.
function requested.tell(reply, token, n, cancelled)
  local wanted, this_call = requested.in_flight(), token .. ':' .. n
  if not cancelled then
    local noted = call('HGET', meta, 'cancelled_by')
    noted = noted and cmsgpack.unpack(noted)
    cancelled = noted and noted[1] == this_call and noted[2] or {}
  elseif #cancelled > 0 then
    call('HSET', meta, 'cancelled_by', cmsgpack.pack({this_call, cancelled}))
  end
  if not wanted and #cancelled == 0 then return end
  reply[5], reply[6], reply[7], reply[8] = reply[5] or {}, reply[6] or 0, wanted or {}, cancelled
end
