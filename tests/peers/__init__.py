"""Cases of other libraries' own tests, each the same here or named as different where people read how to move."""
