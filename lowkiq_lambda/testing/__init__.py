"""For tests of code that uses the library.

The fixtures of `pytest_plugin` are there without an import; what stands here is for other test runners, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lowkiq_lambda.testing.clock import ManualClock
    from lowkiq_lambda.testing.fake import FakeApp, FakePush, fake_app
    from lowkiq_lambda.testing.fuzz.oracle import Effect
    from lowkiq_lambda.testing.fuzz.recording import recorded
    from lowkiq_lambda.testing.fuzz.report import FuzzFailed, FuzzFinding, FuzzReport
    from lowkiq_lambda.testing.jobs import Ran, run_job, run_through
    from lowkiq_lambda.testing.kit import AppUnderTest, app_under_test, forget_keys, inline
    from lowkiq_lambda.testing.live import AppWithDaemon, app_with_daemon
    from lowkiq_lambda.testing.server import OwnServer, open_server
    from lowkiq_lambda.testing.watching import Drained, JobFailed

__all__ = [
    "AppUnderTest",
    "AppWithDaemon",
    "Drained",
    "Effect",
    "FakeApp",
    "FakePush",
    "FuzzFailed",
    "FuzzFinding",
    "FuzzReport",
    "JobFailed",
    "ManualClock",
    "OwnServer",
    "Ran",
    "app_under_test",
    "app_with_daemon",
    "fake_app",
    "forget_keys",
    "inline",
    "open_server",
    "recorded",
    "run_job",
    "run_through",
]
_PLACES: Final = {
    "AppUnderTest": "kit",
    "AppWithDaemon": "live",
    "Drained": "watching",
    "Effect": "fuzz.oracle",
    "FakeApp": "fake",
    "FakePush": "fake",
    "FuzzFailed": "fuzz.report",
    "FuzzFinding": "fuzz.report",
    "FuzzReport": "fuzz.report",
    "JobFailed": "watching",
    "ManualClock": "clock",
    "OwnServer": "server",
    "Ran": "jobs",
    "app_under_test": "kit",
    "app_with_daemon": "live",
    "fake_app": "fake",
    "forget_keys": "kit",
    "inline": "kit",
    "open_server": "server",
    "recorded": "fuzz.recording",
    "run_job": "jobs",
    "run_through": "jobs",
}


def __getattr__(name: str) -> object:
    """Import a name when it is used first: pytest loads the plugin in each project of its environment."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__name__)
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
