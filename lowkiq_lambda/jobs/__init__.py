"""Values: a job, what a push and a batch have of it, and how it is retried."""
