--! keys flight
-- The ids in flight, in no order, read only. A claim's limits bound them.
return call('HKEYS', flight)
