"""The JSON API with its OpenAPI description, metrics for Prometheus, and the health check."""
