"""Observers that keep what they are told."""

from lowkiq_lambda.settings.protocols import SettledEvent


class EventRecorder:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.events: list[SettledEvent] = []

    def settled(self, event: SettledEvent) -> None:
        """Keep it."""
        self.events.append(event)
