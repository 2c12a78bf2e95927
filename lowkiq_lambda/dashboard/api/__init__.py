"""For programs: the same as the pages show and do, as JSON, with a description; numbers for Prometheus; health."""
