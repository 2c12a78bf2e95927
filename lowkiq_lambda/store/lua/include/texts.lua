--! keys errors texts
--! gives DIGEST REFERENCE name_of text_of error_of
-- Texts of errors: a long one is kept once for all ids that have it. `errors` and `morgue_errors` hold for an id 's'
-- text, or 'r' digest beginning (its first line, with the line feed, unless that is long). The rest then lies in
-- `texts` under a letter for the hash and the digest; '#' before these counts the ids that refer to it. The hashes
-- share no rest, so that what the morgue takes up is its own.
local DIGEST, REFERENCE, rest_of = 40, ('r'):byte(), {}

local function name_of(key, stored)
  return (key == errors and 'w' or 'm') .. stored:sub(2, DIGEST + 1)
end

-- The text that is kept so there; false where nothing is.
local function text_of(key, stored)
  if not stored or stored:byte(1) ~= REFERENCE then return stored and stored:sub(2) end
  local name = name_of(key, stored)
  rest_of[name] = rest_of[name] or call('HGET', texts, name) or ''
  return stored:sub(DIGEST + 2) .. rest_of[name]
end

local function error_of(key, id) return text_of(key, call('HGET', key, id)) end
