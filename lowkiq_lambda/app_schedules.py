"""What an app runs by time: schedule entries, and duties."""

from typing import TYPE_CHECKING, Any, Unpack, cast

from lowkiq_lambda.app_core import AppCore
from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from pathlib import Path
    from uuid import UUID

    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.duties.duty import Duty
    from lowkiq_lambda.schedules.options import DeclaredOptions
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.store.inspect.duties import DutyState
    from lowkiq_lambda.worker import FunctionWorker, Worker


class AppSchedules(AppCore):
    """The part of `Lowkiq` that declares what runs by time."""

    def __init__(self, config: Config | None, clock: Clock | None) -> None:
        super().__init__(config, clock)
        self._duties: dict[str, Duty] = {}

    def add_duty(self, duty: "Duty") -> None:
        """Have it run once in each period by one of the app's processes: a tick, or a daemon.

        Raises DeclarationError where the duty cannot work, or the app has one of that name.
        """
        from lowkiq_lambda.duties.duty import check_duty  # noqa: PLC0415 - imported lazily: cold start

        with self._lock:
            check_duty(duty, self._duties)
            self._duties[duty.name] = duty

    @property
    def declared_duties(self) -> "list[Duty]":
        """The duties, in order of declaration."""
        return [*self._duties.values()]

    def duties(self) -> "list[DutyState]":
        """When each duty ran last, what came of it, and when it runs next. Raises BackendError."""
        from lowkiq_lambda.store.inspect.duties import duty_states  # noqa: PLC0415 - imported lazily: cold start

        # Whether a queue is on its way to other shards, its declaration says.
        self.current_queues()
        periods = [(duty.name, duty.every) for duty in self._duties.values()]
        if self.follows_tasks:
            from lowkiq_lambda.tasks.duty import TaskDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((TaskDuty.name, TaskDuty.every))
        if self.follows_moves:
            from lowkiq_lambda.reshard.duty import ReshardDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((ReshardDuty.name, ReshardDuty.every))
        states = duty_states(self.backend, self._queues, periods, self.config.retry_for)
        return [*states, *self.schedules.duty_states()] if self.fires_schedules else states

    @property
    def schedules(self) -> "Schedules":
        """The schedule entries: what has been declared, what is made at run time, and what became of it."""
        with self._lock:
            if self._schedules is None:
                from lowkiq_lambda.schedules.schedules import Schedules  # noqa: PLC0415 - imported lazily: cold start

                self._schedules = Schedules(cast("Lowkiq", self), self._parts)
            return self._schedules

    @property
    def fires_schedules(self) -> bool:
        """Whether daemons and ticks of this app fire schedule entries, as `config.schedules` says."""
        asked = self.config.schedules
        return self.declares_schedules if asked is None else asked

    @property
    def declares_schedules(self) -> bool:
        """Whether the code of this app declares schedule entries."""
        return bool(self._schedules and self._schedules.declared)

    def cron(
        self,
        expression: str,
        worker: "type[Worker[Any]] | FunctionWorker[Any]",
        *,
        id: "str | int | UUID",
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job at the times of a cron expression: five fields, or six with the seconds first.

        `app.cron("0 4 * * *", SyncOrder, id="nightly", tz="Europe/Berlin")`. The job's score is the planned time. A new
        entry fires first at its next planned time. Raises DeclarationError; what only an evaluation shows, `check` of
        `app.schedules` tells.
        """
        from lowkiq_lambda.schedules.times import parse_cron  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_cron(expression, options.get("tz", "UTC")), id, options)

    def every(
        self,
        period: "float | timedelta",
        worker: "type[Worker[Any]] | FunctionWorker[Any]",
        *,
        id: "str | int | UUID",
        offset: "float | timedelta" = 0.0,
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once in each period (seconds), counted from 1970, `offset` seconds later; no restart moves that.

        Raises DeclarationError.
        """
        from lowkiq_lambda.schedules.times import parse_every  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_every(period, offset, options.get("tz", "UTC")), id, options)

    def at(
        self,
        moment: "datetime | float",
        worker: "type[Worker[Any]] | FunctionWorker[Any]",
        *,
        id: "str | int | UUID",
        **options: Unpack["DeclaredOptions"],
    ) -> None:
        """Push a job once, ever: at an aware datetime, or Unix seconds. Raises DeclarationError."""
        from lowkiq_lambda.schedules.times import parse_at  # noqa: PLC0415 - imported lazily: cold start

        self.schedules.declare(worker, parse_at(moment, options.get("tz", "UTC")), id, options)

    def entries_from(self, path: "str | Path") -> None:
        """Declare the schedule entries of a TOML file, as if code did. Raises DeclarationError, OSError."""
        self.schedules.declare_from(path)
