"""Applications that are run and tested like the library, and are part of no package of it."""
