"""Entries that a TOML file declares."""

from pathlib import Path

from lowkiq_lambda.schedules.entry import ScheduleEntry


def read_toml(path: Path) -> list[ScheduleEntry]:
    """The entries of the file, in its order; `worker` names the queue. Raises DeclarationError: file, table and key."""
    raise NotImplementedError
