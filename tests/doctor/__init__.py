"""What `lowkiq doctor` tells of a server and its queues."""
