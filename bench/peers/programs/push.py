"""Let a program push: `python -m bench.peers.programs.push huey_blank`.

A program that is imported has the name that its workers know its handler by.
"""

import sys
from importlib import import_module

import_module(f"bench.peers.programs.{sys.argv[1]}").push()
