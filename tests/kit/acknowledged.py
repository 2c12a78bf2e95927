"""Records for a history what Redis has acknowledged: that a process was done is durable then, and not before."""

from lowkiq_lambda.settings.protocols import SettledEvent
from tests.proof.history import Recorder


class Acknowledged:
    """Records what Redis has acknowledged."""

    def __init__(self, history: Recorder) -> None:
        self._history = history

    def settled(self, event: SettledEvent) -> None:
        """Note each id that is done."""
        for job_id, outcome in event.name_outcomes():
            if outcome == "done":
                self._history.write("settled", job_id, token=event.token)
