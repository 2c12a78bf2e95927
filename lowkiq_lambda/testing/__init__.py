"""For tests of code that uses the library."""

from lowkiq_lambda.testing.clock import ManualClock
from lowkiq_lambda.testing.jobs import Ran, run_job, run_through
from lowkiq_lambda.testing.keys import forget_keys

__all__ = ["ManualClock", "Ran", "forget_keys", "run_job", "run_through"]
