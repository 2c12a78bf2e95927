"""The process of the local cloud: the emulator, and our own parts of it. It runs in the emulator's environment.

Nothing here imports the rest of this library, which that environment does not have.
"""
