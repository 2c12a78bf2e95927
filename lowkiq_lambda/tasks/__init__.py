"""Tasks: jobs whose progress is followed together, and a job that runs when all of them have ended."""
