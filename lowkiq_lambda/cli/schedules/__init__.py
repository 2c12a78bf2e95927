"""`lowkiq schedules`: what the entries of an app will do, without Redis."""
