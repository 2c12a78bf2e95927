--! needs requests rest_paused
--! gives receive_request
-- Takes in what operators want of an id, as carry_requests.lua packs it; a second copy changes nothing. Of two pauses the later
-- end wins.
local function receive_request(_, row)
  local id, here, come = row[1], requested.of(row[1]) or {}, cmsgpack.unpack(row[2])
  here.c = here.c or come.c
  if come.p and not (here.p and here.p.ends >= come.p.ends) then here.p = come.p end
  requested.write(id, here)
  rest_paused(id)
end
