"""Examples that run on a machine of your own."""
