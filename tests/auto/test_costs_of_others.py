"""An app whose code declares all numbers of shards has no part of this."""

from lowkiq_lambda import Auto
from lowkiq_lambda.aws.ticking import tasks_of
from lowkiq_lambda.settings.aws import Settings
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_only_an_app_that_leaves_a_number_open_has_the_duty(make_app: MakeApp, queue_name: str) -> None:
    """Neither a tick nor a daemon has it otherwise, and no queue is watched for it; the setting "off" ends it."""
    with_numbers, with_auto, off = make_app(), make_app(), make_app(auto="off")
    declare(with_numbers, queue_name, Notes(), shards_count=2)
    for app in (with_auto, off):
        declare(app, f"{queue_name}-auto", Notes(), shards_count=Auto(least=2))

    apps = (with_numbers, with_auto, off)
    assert [False, True, False] == [app.core.housekeeping.follows_auto for app in apps]
    assert [False, True, False] == [app.core.housekeeping.watches for app in apps]
    assert [set(), {"auto", "watch"}, set()] == [{*tasks_of(app, Settings())} & {"auto", "watch"} for app in apps]
