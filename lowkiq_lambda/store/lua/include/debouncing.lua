--! keys debouncing
--! gives LATEST debounced_until
-- Debouncing: a new id waits for more pushes. `debouncing` has of such an id the time that it was given so, and, behind the
-- byte 255, which no id begins with, the latest time that it may get. An id debounces as long as its time is that very
-- one and lies ahead. A retry, an operator or a claim that sets another time ends that, without a look at this key.
local LATEST = '\255'

-- The latest time that the id may get, if it has the time that debouncing gave it; else nil.
local function debounced_until(id, due_at)
  local given, latest = unpack(call('ZMSCORE', debouncing, id, LATEST .. id))
  if given and latest and tonumber(given) == tonumber(due_at) then return tonumber(latest) end
end
