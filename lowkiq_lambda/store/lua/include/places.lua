--! keys places
--! needs queue
--! gives places_now
-- The places of a queue: hash of nonce to msgpack of `shard`; `till`, when it ends by itself; `n`, the number of its last
-- call; `granted`, ids by that call; `at`, until when these may begin. An offer stands under 'offer ' and the shard.

-- Those that last, by name; how many these are; when the first of them ends; and the names of those that do not last.
local function places_now()
  local lasting, count, first_end, ended = {}, 0, math.huge, {}
  local all = call('HGETALL', places)
  for i = 1, #all, 2 do
    local is_sound, place = pcall(cmsgpack.unpack, all[i + 1])
    if is_sound and type(place) == 'table' and (tonumber(place.till) or 0) - ahead > queue_now then
      place.till = place.till - ahead
      if place.at then place.at = place.at - ahead end
      lasting[all[i]], count, first_end = place, count + 1, math.min(first_end, place.till)
    else
      ended[#ended + 1] = all[i]
    end
  end
  return lasting, count, first_end, ended
end
