"""Stands in front of the SDK of OpenTelemetry for processes that tests start: most people have not installed it.

The client of Redis loads it wherever it is installed, which is a fifth of the time that a process takes to start.
"""

raise ImportError(name=__name__)
