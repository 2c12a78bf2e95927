--! keys gathering
--! gives LATEST gathers_until
-- Gathering: a new id waits for more pushes. `gathering` has of such an id the time that it was given so, and, behind the
-- byte 255, which no id begins with, the latest time that it may get. An id gathers as long as its time is that very
-- one and lies ahead. A retry, an operator or a claim that sets another time ends that, without a look at this key.
local LATEST = '\255'

-- The latest time that the id may get, if it has the time that gathering gave it; else nil.
local function gathers_until(id, perform_in)
  local given, latest = unpack(call('ZMSCORE', gathering, id, LATEST .. id))
  if given and latest and tonumber(given) == tonumber(perform_in) then return tonumber(latest) end
end
