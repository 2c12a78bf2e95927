"""What people are told of a queue while a group of it is on its way, and its mover is gone."""

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.presentation.diagnosis import diagnose
from lowkiq_lambda.store.shard.moving import MovingShards
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


class DiedOnItsWay(BaseException):
    """The mover is gone before what it carries has been received."""


def test_a_job_says_that_its_group_moves(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that waits in a closed shard, and one that was pushed since, do not complain that no drain comes."""

    def killed(*_: object) -> None:
        raise DiedOnItsWay

    worker = declare(app, queue_name, Notes(), shards_count=1)
    worker.push_many(jobs_of("a"))
    with monkeypatch.context() as patch:
        patch.setattr(MovingShards, "receive", killed)
        with pytest.raises(DiedOnItsWay):
            app.operate(worker).reshard(to=2)
    worker.push_many(jobs_of("b"))

    queue = app.operate(worker)
    told = [queue.explain(job_id) for job_id in "ab"]

    assert ["closed", "receiving"] == [one.shard.role for one in told]
    assert ["moving", "moving"] == [diagnose(one, 1).kind for one in told]
    assert ["closed", "receiving", "receiving"] == [shard.role for shard in queue.shards()]

    app.operate(worker).reshard(to=2)

    queue = app.operate(worker)
    assert ["open", "open"] == [queue.explain(job_id).shard.role for job_id in "ab"]
    assert ["open", "open"] == [shard.role for shard in queue.shards()]
