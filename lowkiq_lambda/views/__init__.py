"""Values that operators see of queues, jobs and processes."""
