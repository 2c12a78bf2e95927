"""A real Valkey server for those who gave no URL."""
