"""`lowkiq doctor`."""
