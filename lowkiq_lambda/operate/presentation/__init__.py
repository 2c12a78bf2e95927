"""What people are shown of queues and jobs: on pages, by the API and at the command line."""
