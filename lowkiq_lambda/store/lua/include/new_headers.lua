--! needs headers in_use
--! gives read_header note_header keep_headers
-- What a push does for jobs with headers. Of a packed job: the length (2 bytes), and the header.
local new_headers = {}

-- The header, and where what follows begins.
local function read_header(given, at)
  local after = at + 2 + struct.unpack('>I2', given, at)
  return given:sub(at, after - 1), after
end

local function note_header(header, number)
  new_headers[#new_headers + 1] = number
  new_headers[#new_headers + 1] = struct.pack('>I2', 1) .. header
end

-- Before the payloads are put, as these may join others.
local function keep_headers()
  if #new_headers == 0 then return end
  write_headers(new_headers)
  note_use('headers', true)
end
