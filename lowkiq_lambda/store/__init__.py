"""Jobs in Redis or Valkey: the only package that uses the server."""
