--! gives PLACE UNTOUCHED kinds SEVERAL STARTED
-- What waits under an id. A place is score (8 bytes, order-preserving) and arrival number (6 bytes): its byte order is
-- the order in which payloads are handed over. The record of a single payload is 's' place payload, or 't' touched
-- place payload once an equal one was pushed again; that of a few short ones is 'f', or 'g' touched, then their number (a
-- byte), and the payloads as a record in flight has them (payloads.lua); that of more is 'm' touched, with the payloads in
-- the box; that of a started job (started.lua) is 'p' touched, with what it was handed, and what waits behind that, in the
-- box.
local PLACE, UNTOUCHED = 14, string.rep('\0', 6)
local SEVERAL, STARTED = ('mp'):byte(1, 2)
-- Of the records with payloads in them.
local kinds = {single = ('s'):byte(), touched = ('t'):byte(), few = ('f'):byte(), few_touched = ('g'):byte()}
