--! keys requests
--! needs cargo requests
--! gives carry_requests drop_request
-- Requests of operators for single ids: {id, request}, with the arrival number of a cancel as it is there.
local STEP = 500

local function carry_requests()
  local cursor = '0'
  repeat
    local listed
    cursor, listed = unpack(call('HSCAN', requests, cursor, 'COUNT', math.max(1, math.min(STEP, cargo_records))))
    for i = 1, #listed, 2 do
      local id, request = listed[i], cmsgpack.unpack(listed[i + 1])
      if request.c then request.c.upto = request.c.upto + base end
      load('request', id, id, {id, cmsgpack.pack(request)}, 1)
    end
  until cursor == '0' or is_full()
end

local function drop_request(_, id) requested.write(id, {}) end
