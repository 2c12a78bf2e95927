"""Jobs in Redis or Valkey: the only package that knows the server."""
