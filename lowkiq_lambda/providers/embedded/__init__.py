"""A real Valkey server for those who gave no URL."""

from lowkiq_lambda.providers.embedded.server import EmbeddedValkey, open_embedded

__all__ = ["EmbeddedValkey", "open_embedded"]
