"""What makes projects, packages and stacks, and counts their costs; no function on Lambda has it."""
