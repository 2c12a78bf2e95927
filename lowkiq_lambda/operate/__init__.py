"""What operators see of the queues of an app, and do to them."""
