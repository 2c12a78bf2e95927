--! gives FAR
-- The due time of an id whose head is blocked: the year 10000, which no push may give.
local FAR = 253402300800
