--! keys requests
--! needs in_use
--! gives request_of write_request
-- What operators want of single ids: id to a msgpack map of `c`, a cancel, while the id is in flight: {at, by, upto, error},
-- for payloads with arrival numbers up to `upto`, which go to the morgue where there is an `error`; and of `p`, a pause: {at,
-- by, ends, due, suspect}: until `ends` the id is due no sooner, `due` is the time that it would have, and `suspect` says that
-- it is to run alone.

local function request_of(id)
  local packed = call('HGET', requests, id)
  return packed and cmsgpack.unpack(packed)
end

local function write_request(id, request)
  if next(request) then
    call('HSET', requests, id, cmsgpack.pack(request))
    return note_use('requests', true)
  end
  if call('HDEL', requests, id) == 1 and call('EXISTS', requests) == 0 then note_use('requests', false) end
end
