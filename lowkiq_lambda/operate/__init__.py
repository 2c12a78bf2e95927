"""Views and acts of operators on the queues of an app."""
