"""The operators' load: many queues with planted troubles, to look at by the dashboard and the command line."""
