"""Faults that are generated from the text of the Lua scripts, and the score: how many of them the runs find."""
