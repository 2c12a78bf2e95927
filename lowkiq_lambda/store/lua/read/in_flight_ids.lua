--! keys flight
-- The ids in flight, in no order, read only. A claim's limits bound them. Returns {{id, ...}}.
return {call('HKEYS', flight)}
