"""The programs of the peers: each pushes and works off blank jobs, and imports its own library and nothing of ours."""
