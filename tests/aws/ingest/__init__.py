"""What comes in from outside, and becomes jobs."""
