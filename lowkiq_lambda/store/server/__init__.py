"""A server and the ways to it: addresses, connections, faults, pipelines, its clock."""
