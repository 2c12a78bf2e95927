"""Keys of jobs, forgotten between tests."""

from lowkiq_lambda.app import Lowkiq, for_each_app, no_longer_for_each_app
from lowkiq_lambda.operate.inspect.forgetting import forget_all_keys


def forget_keys(*apps: Lowkiq) -> int:
    """Forget all keys of jobs (`key`) that were pushed to the queues of these apps, or of all apps of the process.

    So one test's pushes are no repeats of another's. Returns how many were remembered. Raises BackendError.
    """
    found: list[Lowkiq] = []
    if not apps:
        for_each_app(found.append)
        no_longer_for_each_app(found.append)
    return sum(forget_all_keys(app.operate.actions(worker).reader) for app in apps or found for worker in app.workers)
