"""`lowkiq stack schedules`: the schedules of the drain function follow the app's workers."""
