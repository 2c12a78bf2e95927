"""What people look at and do, on a real server."""
