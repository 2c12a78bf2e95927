--! keys meta timetable lines debouncing receipts refs headers_even headers_odd marks_even runs expiries undo undo_notes requests
--! needs sound_meta shard shelf journal
--! rarely sound_ids sound_lanes sound_timetable sound_items sound_marks sound_expiries sound_requests
-- Looks through the shard for records that no script could have written: sets them aside with their bytes, or repairs them
-- if they follow from the rest of the shard. A step of that; harmless to repeat, at any time, and beside a holder, as nothing
-- that is sound is changed.
-- ARGV[4]  seconds for which no holder is let in if the lease cannot be read
-- ARGV[5]  the key to go on with, '' at first
-- ARGV[6]  its cursor
-- ARGV[7]  '1' if the bytes of the morgue are counted anew, else ''
-- Returns {'OK', the key to go on with, '' at the end, its cursor, '1' or '' for [7], how many records were damaged,
--   {key, id, why, '1' if it was set aside, else '', ...} of the first of them}, or a refusal.
local ttl, part, cursor, recounts = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7] == '1'
-- What an id needs to be sound comes before what needs the id.
local PARTS = {
  'texts', 'flight', 'box', 'jobs', 'due', 'seen', 'since', 'retry', 'suspects', 'errors', 'trouble', 'groups', 'morgue',
  'morgue_payloads', 'morgue_errors', 'failures', 'pushes_even', 'pushes_odd',
}
local RECORDS, BYTES = 2000, 4 * 1024 * 1024
if lines then rarely().look_at_lanes(PARTS) end
if refs then rarely().look_at_items(PARTS) end
if marks_even then rarely().look_at_marks(PARTS) end
if expiries then rarely().look_at_expiries(PARTS) end
if requests then rarely().look_at_requests(PARTS) end
if has_timetable then
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'timetable', timetable, 'hash'}
  PARTS[#PARTS + 1], rarely().CHECKS.timetable = 'timetable', rarely().check_entry_record
end

if has_debouncing then KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'debouncing', debouncing, 'zset'} end
if has_receipts then KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'receipts', receipts, 'zset'} end
if has_runs then KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'runs', runs, 'stream'} end
if has_undo then
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'undo', undo, 'stream'}
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'undo_notes', undo_notes, 'hash'}
end
if has_headers then
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'headers_even', headers_even, 'hash'}
  KEYS_OF_A_SHARD[#KEYS_OF_A_SHARD + 1] = {'headers_odd', headers_odd, 'hash'}
end

-- Only the server's own clock can show that a lease is impossible.
if part == '' and not measured then return {'SKEW', now_text} end

-- The notes of a step come once, so a refusal must come before the first repair.
local used = lacking and redis.pcall('HGET', meta, 'in_use')
local unknown = type(used) == 'string' and lacks_keys(used)
if unknown then return unknown end

-- Frees nothing, but lets the script write when memory is full; meta may have another type.
redis.pcall('HDEL', meta, '')
if part == '' then
  local taken = take_other_types()
  recounts = check_meta(ttl)
  keep(taken, ttl)
  check_lease(ttl)
  part, cursor = PARTS[1], '0'
end
local refused = refusal()
-- A move that meets damage has it mended where it lies.
if refused and refused[1] ~= 'CLOSED' and refused[1] ~= 'MOVING' then return refused end

local keys, types, positions = {}, {}, {}
for _, each in ipairs(KEYS_OF_A_SHARD) do keys[each[1]], types[each[1]] = each[2], each[3] end
for i, name in ipairs(PARTS) do positions[name] = i end
local largest = tonumber(call('HGET', meta, 'max_len')) or BYTES / 10
local step, looked = math.max(1, math.min(500, math.floor(BYTES / math.max(1, largest)))), 0
while part ~= '' and looked < RECORDS do
  local command = types[part] == 'hash' and 'HSCAN' or 'ZSCAN'
  local following, records = unpack(call(command, keys[part], cursor, 'COUNT', step))
  for i = 1, #records, 2 do rarely().CHECKS[part](records[i], records[i + 1], recounts) end
  cursor, looked = following, looked + #records / 2
  if cursor == '0' then part = PARTS[positions[part] + 1] or '' end
end
local longest = rarely().longest_payload()
if longest > (tonumber(call('HGET', meta, 'max_len')) or 0) then call('HSET', meta, 'max_len', longest) end
if found > 0 then
  enter('repaired', {count = found, arrival = tonumber(call('HGET', meta, 'arrival') or 0)})
  write_journal()
end
return {'OK', part, cursor, recounts and '1' or '', found, notes}
