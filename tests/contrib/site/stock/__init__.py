"""An app whose module `jobs` declares a worker of its own."""
