"""The fuzz of handlers: `lowkiq.fuzz` and `lowkiq fuzz`."""
