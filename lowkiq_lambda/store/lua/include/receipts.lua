--! keys receipts meta
--! needs shard
--! gives has_receipt drop_receipt keep_receipts
-- Receipts: the keys of jobs that were pushed. A job with a key that is still remembered is passed over.
-- Of a packed job: a digest of its id (6 bytes) and one of its id and its key (10), and for how many seconds it is remembered (a double).
local KEY_DIGEST, RECEIPT, MOST_RECEIPTS, FORGOTTEN = 16, 24, 100000, 10
local given_receipts, digests = {}, {}

-- Whether a job with this key was pushed before, by this call too; and where what follows begins.
local function has_receipt(given, at)
  local digest = given:sub(at, at + KEY_DIGEST - 1)
  if digests[digest] then return true, at + RECEIPT end
  local kept_until = tonumber(call('ZSCORE', receipts, digest) or 0)
  if kept_until > now then return true, at + RECEIPT end
  digests[digest] = true
  given_receipts[#given_receipts + 1] = string.format('%.17g', now + struct.unpack('>d', given, at + KEY_DIGEST))
  given_receipts[#given_receipts + 1] = digest
  return false, at + RECEIPT
end

-- The job that was asked about last is not stored: the next one with its key is not a repeat of it.
local function drop_receipt()
  digests[table.remove(given_receipts)] = nil
  table.remove(given_receipts)
end

-- As many go as come, and a few more: first what is over, then what ends next where there are too many.
local function keep_receipts()
  if #given_receipts == 0 then return end
  call('ZADD', receipts, unpack(given_receipts))
  local room = FORGOTTEN + #given_receipts / 2
  local ended = call('ZRANGE', receipts, '-inf', '(' .. now_text, 'BYSCORE', 'LIMIT', 0, room)
  if #ended > 0 then call('ZREM', receipts, unpack(ended)) end
  local rest = math.min(call('ZCARD', receipts) - MOST_RECEIPTS, room)
  if rest <= 0 then return end
  call('ZPOPMIN', receipts, rest)
  call('HINCRBY', meta, 'receipts_trimmed', rest)
end
