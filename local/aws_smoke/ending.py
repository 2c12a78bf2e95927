"""The end of a run: all that it made is taken away, whatever happened, and nothing is left by its name."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from local.aws_smoke.outside import SmokeFailed, until
from local.inventory import LOGS, inventory
from lowkiq_lambda.stack.cloud.access import CloudAccess
from lowkiq_lambda.stack.cloud.deployment import Deployment

_LATE: Final = 30
"""Looks until what AWS still lists is taken for left: some lists are a minute late."""


class Ending:
    """Takes stacks away, the newest first. `left`: what could not be taken away, with the reason."""

    def __init__(self, cloud: CloudAccess, name: str, say: Callable[[str], None]) -> None:
        self.left: list[str] = []
        self.alive: dict[str, float] = {}
        """Seconds for which a stack was there, by its name."""
        self._cloud, self._name, self._say = cloud, name, say
        self._made: list[tuple[Deployment, float]] = []

    def add(self, made: Deployment) -> None:
        """Take this away at the end, even if it is half made."""
        self._made.append((made, time.time()))

    def keep_all(self) -> str:
        """Take nothing away; a sentence."""
        self.alive = {made.name: time.time() - made_at for made, made_at in self._made}
        return f"kept, with the bucket of the packages: {', '.join(made.name for made, _ in self._made)}"

    def destroy_all(self) -> str:
        """Take all away; what shows it. Raises SmokeFailed with what is left."""
        with self._undisturbed():
            for made, made_at in reversed(self._made):
                self._say(f"destroying {made.name}")
                try:
                    made.delete()
                except Exception as error:  # noqa: BLE001 - the others are to go all the same
                    self.left.append(f"{made.name}: {error}")
                self.alive[made.name] = time.time() - made_at
            kinds = self._still_there()
        self.left += [f"{kind}: {', '.join(sorted(names))}" for kind, names in kinds.items() if names]
        if self.left:
            raise SmokeFailed(f"These could not be destroyed: {'; '.join(self.left)}")
        return f"nothing named {self._name} is left among {len(kinds)} kinds of resources"

    def _still_there(self) -> dict[str, set[str]]:
        kinds: dict[str, set[str]] = {}

        def is_empty() -> bool:
            kinds.update(inventory(self._cloud, self._name))
            # A function that still ran when its stack went may have made its log anew.
            for name in kinds[LOGS]:
                self._cloud.client("logs").delete_log_group(logGroupName=name)
            return not any(kinds.values())

        looks = 1 if self.left else _LATE
        with suppress(SmokeFailed):
            until("the end of all resources", is_empty, looks * self._cloud.rest, self._cloud.rest)
        return kinds

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Ctrl-C has ended the steps before; it does not end what takes them away."""
        before = signal.signal(signal.SIGINT, lambda *_: self._say("this goes on: half of a stack would be left"))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
