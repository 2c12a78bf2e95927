"""Authentication and authorization of the dashboard, and its protection against forged requests."""
