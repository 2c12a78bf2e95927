"""Entrances for AWS Lambda: the drain function, the dispatcher, the dashboard, and what they stand on."""
