"""Cases of other libraries' own tests, each the same here or named as different where people read how to move."""
"""Test cases of other libraries: the same behaviour here, or ours where the migration pages name the difference."""
