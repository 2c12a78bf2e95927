"""Each is the command of `lowkiq` with the rest of its name."""
