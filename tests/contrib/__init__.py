"""The outbox: jobs that commit with a transaction, on real databases and a real server."""
