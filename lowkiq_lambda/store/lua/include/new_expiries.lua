--! needs expiries
--! gives read_expiry note_expiry keep_expiries
-- What a push does for jobs that expire. Of a packed job: the time.
local new_expiries = {}

-- The time, and where what follows begins.
local function read_expiry(packed_job, at) return packed_job:sub(at, at + 7), at + 8 end

local function note_expiry(time, number)
  new_expiries[#new_expiries + 1], new_expiries[#new_expiries + 2] = number, time
end

-- Before the payloads are put, as these may join others.
local function keep_expiries()
  if #new_expiries > 0 then write_expiries(new_expiries) end
end
