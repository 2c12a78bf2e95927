"""A stack under load in a local cloud: deployed, throttled, rotated, rolled back, and checked job by job."""
