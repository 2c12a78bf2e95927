"""Is a handler right, whatever happens to its process? Scenarios with faults, each compared with a plain run.

Nothing of it is imported before a test or `lowkiq fuzz` asks for it.
"""
