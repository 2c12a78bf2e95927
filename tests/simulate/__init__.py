"""The simulation: its laws, its inputs, and how near it is to the engine."""
