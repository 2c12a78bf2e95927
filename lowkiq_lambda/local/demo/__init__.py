"""The bundled demo: replays a git repository's history into a table and compares it with git's own end."""
