--! keys due jobs box seen since retry errors trouble suspects groups flight morgue morgue_payloads morgue_errors
--! keys meta pushes_even pushes_odd failures texts journal lines lanes served
--! keys receipts refs rows items headers_even headers_odd marks_even marks_odd expiries
--! needs shard free_memory_first
-- Ends the use of an empty shard, whose queue is about to have another declaration: from then on every script refuses
-- it. Harmless to repeat.
-- ARGV[4]  generation of the declaration
-- Returns {'OK'}; {'JOBS'} where it holds any, and stays open; {'STALE'} where a later generation has given the shard
--   an order; or a refusal.
local refused = refusal()
if refused and refused[1] ~= 'CLOSED' and refused[1] ~= 'MOVING' then return refused end
local last = call('HGET', meta, 'generation')
if last and not (tonumber(last) < 2 ^ 53) then error('DAMAGED generation') end
if last and tonumber(last) > tonumber(ARGV[4]) then return {'STALE'} end
if call('EXISTS', due, jobs, box, suspects, flight, morgue, morgue_payloads) > 0 then return {'JOBS'} end
free_memory_first()
call('UNLINK', seen, since, retry, errors, trouble, groups, morgue_errors, pushes_even, pushes_odd, failures, texts, journal)
if lanes then call('UNLINK', lines, lanes, served) end
if has_receipts then call('UNLINK', receipts) end
if has_tracking then call('UNLINK', refs, rows, items) end
if has_headers then call('UNLINK', headers_even, headers_odd) end
if has_expiry then call('UNLINK', expiries) end
if has_marks then call('UNLINK', marks_even, marks_odd) end
call('HDEL', meta, 'in_use', 'closed_at', 'refused_at', 'receiving', 'still_until')
call('HSET', meta, 'closed', 1, 'generation', ARGV[4], 'now', latest_now)
return {'OK'}
