"""A smoke run of the whole in an account of AWS: `python -m local.aws_smoke`."""

import argparse
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from local.aws_smoke.account import Account
from local.aws_smoke.report import Used, report
from local.aws_smoke.smoke import Plan, Smoke
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.providers.embedded.server import open_embedded
from lowkiq_lambda.stack.cloud.parameters import parameters_of
from lowkiq_lambda.stack.cloud.project_cloud import build_packages
from lowkiq_lambda.stack.scaffold.owned import TEMPLATE, stack_folder
from tests.kit.servers import LocalCloud

if TYPE_CHECKING:
    from lowkiq_lambda.stack.cloud.access import CloudAccess

REPORT: Final = Path("build/aws-smoke.md")
GOOD, FAILED, REFUSED = 0, 1, 2

_APP: Final = Path(__file__).parent / "app"
_MINUTES: Final = 40
"""Of a run with a cache: it takes AWS ten to make one, and up to twenty to free a network of its functions."""
_MINUTES_WITHOUT: Final = 15
_MINUTES_LOCAL: Final = 2
_DESCRIPTION = """
Deploy a network, a cache and a small app to the account of the environment's credentials, push jobs into its inbox
from outside, wait until they are done, move the queue to other shards under pushes, let an alarm ring, and destroy all
of it. It says what it made of promises and what it cost, and writes build/aws-smoke.md. It asks before it begins.
"""


def main() -> None:
    """Read the command line, run, and exit."""
    parser = argparse.ArgumentParser(prog="python -m local.aws_smoke", description=_DESCRIPTION)
    parser.add_argument("--local", action="store_true", help="use a local cloud and a Valkey: no account, no cost")
    parser.add_argument("--region", help="of AWS (default: that of the environment)")
    parser.add_argument("--jobs", type=int, default=3_000, help="how many are pushed at first (default: 3000)")
    parser.add_argument("--inbox", choices=["fifo", "standard"], default="fifo")
    parser.add_argument("--redis-url", help="of a cache that exists; in a VPC give SubnetIds and SecurityGroupIds, too")
    parser.add_argument("--secret", metavar="ARN", help="of a secret with such a URL")
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE", help="of template.yaml")
    parser.add_argument("--keep", action="store_true", help="destroy nothing")
    parser.add_argument("--yes", action="store_true", help="begin without a question")
    options = parser.parse_args()
    # An end by the system takes all away, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(_run(options))
    except KeyboardInterrupt:
        sys.exit(FAILED)
    except LowkiqError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(REFUSED)


def _run(options: argparse.Namespace) -> int:
    with ExitStack() as stack:
        parameters = parameters_of(_APP, stack_folder() / TEMPLATE, options.parameter, _say) | {"Inbox": options.inbox}
        if options.local:
            cloud: CloudAccess = stack.enter_context(LocalCloud(enforces_rights=True))
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lowkiq-valkey-")))
            parameters["RedisUrl"] = stack.enter_context(open_embedded(data)).url
            os.environ.update(cloud.environment)
            where = "the local cloud"
        else:
            cloud = Account(options.region)
            where = f"AWS, account {cloud.id}, {cloud.region}"
        if options.redis_url:
            parameters["RedisUrl"] = options.redis_url
        if options.secret:
            parameters["RedisSecretArn"] = options.secret
        makes_cache = not {"RedisUrl", "RedisSecretArn"} & parameters.keys()
        plan = Plan(options.jobs, parameters, makes_cache, starts_drains=options.local, keeps=options.keep)
        _say(announcement(where, plan))
        if not (options.yes or options.local or input("Begin? [y/N] ").strip().lower() in {"y", "yes"}):
            _say("nothing was made")
            return REFUSED
        packages = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lowkiq-packages-")))
        build_packages(_APP, packages)
        smoke = Smoke(cloud, packages, plan, _say)
        is_good = smoke.run()
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(report(where, smoke.name, smoke.parameters, smoke.steps, smoke.used), encoding="utf-8")
        _say(f"{sum(smoke.used.cents.values()):.2f} cents; the report is in {REPORT}")
        return GOOD if is_good else FAILED


def announcement(where: str, plan: Plan) -> str:
    """What will be made, for how long and for how much."""
    made = "a network, an ElastiCache Serverless, and " if plan.makes_cache else ""
    minutes = _MINUTES if plan.makes_cache else _MINUTES_LOCAL if plan.starts_drains else _MINUTES_WITHOUT
    seconds = 60.0 * minutes
    expected = Used(
        seconds, seconds if plan.makes_cache else 0, 600, 10 * minutes, plan.jobs / 5, 500, 10**6, plan.jobs, 9, 12
    )
    cents = sum(expected.cents.values())
    end = "nothing is destroyed" if plan.keeps else "all is destroyed at the end"
    return (
        f"{where}: {made}a stack of template.yaml with three functions, nine schedules, two queues and alarms.\n"
        f"About {minutes} minutes and {cents:.1f} cents; {end}."
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
