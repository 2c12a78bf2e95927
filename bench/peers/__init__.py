"""Other libraries on the same work, beside ours."""
