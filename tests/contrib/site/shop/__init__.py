"""An app whose module `jobs` has the app of all jobs."""
