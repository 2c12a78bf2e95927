"""The proof: what was tried to break the engine, and what judges it."""
