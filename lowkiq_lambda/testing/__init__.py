"""For tests of code that uses the library."""

from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.jobs import Ran, run_job, run_through

__all__ = ["ManualClock", "Ran", "run_job", "run_through"]
