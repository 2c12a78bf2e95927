"""huey: a call for each job, as it has none for many; its consumer has threads."""

from huey import RedisHuey

from bench.peers.programs import meter

queue = RedisHuey("blank", url=meter.URL, results=False)
blank = queue.task()(meter.blank)


def push() -> None:
    """Call the task."""
    meter.push_one_by_one(blank)
