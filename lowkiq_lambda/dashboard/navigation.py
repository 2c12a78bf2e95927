"""The pages of the dashboard that belong to no queue, and the names of a queue's own."""

from collections.abc import Mapping
from typing import Final

MAIN: Final[Mapping[str, str]] = {
    "": "Overview",
    "errors": "Errors",
    "tasks": "Tasks",
    "schedules": "Schedules",
    "processes": "Processes",
    "past-actions": "Actions",
}
"""By path, in the order of the header."""
OF_QUEUE: Final[Mapping[str, str]] = {
    "queue": "Queue",
    "waiting": "Waiting",
    "processing": "In flight",
    "morgue": "Morgue",
    "errors": "Errors",
    "shards": "Shards",
    "recovered": "Recovered",
    "limits": "Limits",
    "tenants": "Tenants",
    "job": "Job",
}
"""By path, in the order of the tabs."""
