"""The peers: how each is found, pushes and works, and the settings that are tried for it.

A command is that of the peer's own documentation. `{bin}` is the folder of its programs, other words in braces are
settings. Each worker is one process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final, TypeAlias

from bench.peers.installed import Installed, bullmq, in_environment, lowkiq, ours, sidekiq

Settings: TypeAlias = Mapping[str, int | float | str]

PROGRAMS: Final = Path(__file__).parent / "programs"
SIDE_BY_SIDE: Final = 100
"""Handlers that wait at the same time, in the second table."""
_CONCURRENCY: Final = (1, 5, 10, 50, 100)
_PUSH: Final = "{python} -m bench.peers.programs.push "


@dataclass(frozen=True, slots=True)
class Peer:
    """`blank` and `waiting` are what is tried for jobs that do nothing and for handlers that wait; `fixed` is not."""

    name: str
    key: str
    find: Callable[[], Installed | None]
    install: str
    push: str
    work: str
    blank: Sequence[Settings] = ()
    waiting: Sequence[Settings] = ()
    fixed: Settings = field(default_factory=dict)
    backend: str = "redis"
    environment: Mapping[str, str] = field(default_factory=dict)

    def called(self, version: str) -> str:
        """Its name with the version, as it is named in a table."""
        name, comma, variant = self.name.partition(",")
        return f"{name} {version}".strip() + comma + variant


def tried(concurrency: Sequence[int] = _CONCURRENCY, **others: Sequence[int | float | str]) -> list[Settings]:
    """Each concurrency with each of the others."""
    names, values = ("concurrency", *others), (concurrency, *others.values())
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]


def label(settings: Settings) -> str:
    """As it is named in a table."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()) or "defaults"


def _ours(name: str, settings: Sequence[Settings], *, waits: bool, **fixed: int | str) -> Peer:
    work = "{python} -m bench.peers.programs.ours_blank"
    blank, waiting = ((), settings) if waits else (settings, ())
    return Peer(f"ours, {name}", "ours", ours, "", _PUSH + "ours_blank", work, blank, waiting, fixed)


def _python(  # noqa: PLR0913 - a peer's facts, by keyword
    name: str,
    work: str,
    *,
    blank: Sequence[Settings],
    waiting: Sequence[Settings] = (),
    distribution: str = "",
    environment: str = "peers",
    program: str = "",
    fixed: Settings | None = None,
    backend: str = "redis",
    variables: Mapping[str, str] | None = None,
) -> Peer:
    distribution = distribution or name.lower()
    program = f"{program or name.lower()}_blank"
    return Peer(
        name,
        distribution,
        partial(in_environment, environment, distribution),
        "`make peers`",
        _PUSH + program,
        f"{{bin}}/{work.replace('PROGRAM', f'bench.peers.programs.{program}')}",
        blank,
        waiting,
        fixed or {},
        backend,
        variables or {},
    )


_DEFAULTS: Final[Mapping[str, int | str]] = {"concurrency": 1, "shards_count": 5, "handler": "thread"}
_TASKIQ: Final = "taskiq worker PROGRAM:broker -w 1 --max-async-tasks {concurrency} --max-prefetch {prefetch}"
_CELERY: Final = "celery -A PROGRAM worker -P {pool} -c {concurrency} -l ERROR"
_PROCRASTINATE: Final = "procrastinate -a PROGRAM.app worker -c {concurrency} --delete-jobs {delete_jobs}"
_RUBY: Final = f"{{ruby}} {PROGRAMS}/"
_LOWKIQ: Final = f"{{ruby}} -I {{lowkiq}}/lib {{lowkiq}}/exe/lowkiq -r {PROGRAMS}/lowkiq_blank.rb"
_DEBIAN: Final = "Debian's ruby-sidekiq, ruby-hiredis, ruby-connection-pool and ruby-rack"

PEERS: Final[Sequence[Peer]] = (
    *(_ours(f"batch_size {size}", [{}], waits=False, batch_size=size, **_DEFAULTS) for size in (1, 10, 100)),
    *(
        _ours(
            f"{handler}s",
            [{"concurrency": SIDE_BY_SIDE // shards, "shards_count": shards} for shards in (1, 5)],
            waits=True,
            batch_size=1,
            handler=handler,
        )
        for handler in ("thread", "coroutine")
    ),
    Peer(
        "Sidekiq, hiredis",
        "sidekiq",
        sidekiq,
        _DEBIAN,
        f"{_RUBY}sidekiq_blank.rb",
        f"{{sidekiq}} -r {PROGRAMS}/sidekiq_blank.rb -c {{concurrency}}",
        tried(),
        tried([SIDE_BY_SIDE]),
    ),
    *(
        Peer(
            f"Lowkiq, hiredis, batch_size {size}",
            "lowkiq",
            lowkiq,
            f"{_DEBIAN}, and LOWKIQ_DIR, which names a checkout of Lowkiq",
            f"{{ruby}} -I {{lowkiq}}/lib {PROGRAMS}/lowkiq_blank.rb",
            _LOWKIQ,
            tried([1, 5, 10, 50]),
            tried([SIDE_BY_SIDE]) if size == 1 else (),
            {"batch_size": size},
        )
        for size in (1, 100)
    ),
    Peer(
        "BullMQ",
        "bullmq",
        bullmq,
        "Node.js and `make peers`",
        f"{{node}} {PROGRAMS}/bullmq_blank.cjs",
        f"{{node}} {PROGRAMS}/bullmq_blank.cjs work",
        tried(),
        tried([SIDE_BY_SIDE]),
    ),
    _python(
        "huey",
        "huey_consumer PROGRAM.queue -w {concurrency} -k thread -n -q",
        blank=tried(),
        waiting=tried([SIDE_BY_SIDE]),
    ),
    _python(
        "dramatiq",
        "dramatiq PROGRAM --processes 1 --threads {concurrency} --skip-logging",
        blank=tried(prefetch=[200, 1_000]),
        waiting=tried([SIDE_BY_SIDE], prefetch=[200, 1_000]),
        variables={"dramatiq_queue_prefetch": "{prefetch}"},
    ),
    _python(
        "Celery",
        f"{_CELERY} --without-gossip --without-mingle --without-heartbeat",
        blank=[*tried([1], pool=["solo"], prefetch=[4, 100]), *tried(pool=["threads"], prefetch=[4, 100])],
        waiting=tried([SIDE_BY_SIDE], pool=["threads"], prefetch=[4, 100]),
        variables={"C_FORCE_ROOT": "1"},
    ),
    _python("RQ", "rq worker -w rq.SimpleWorker -q -u {url} blank", blank=tried([1], result_ttl=[0, 500])),
    _python(
        "arq",
        "arq PROGRAM.WorkerSettings",
        blank=tried([10, 50, 100], poll_delay=[0.5, 0.01, 0.001]),
        waiting=tried([SIDE_BY_SIDE], poll_delay=[0.5, 0.01, 0.001]),
        environment="peers-older",
    ),
    _python(
        "saq",
        "saq PROGRAM.settings --quiet",
        blank=tried(),
        waiting=tried([SIDE_BY_SIDE]),
        environment="peers-older",
    ),
    *(
        _python(
            f"taskiq, {broker}",
            f"{_TASKIQ} --log-level ERROR",
            blank=tried(prefetch=[0, 100]),
            waiting=tried([SIDE_BY_SIDE], prefetch=[0, 100]),
            fixed={"broker": broker},
            distribution="taskiq",
            program="taskiq",
        )
        for broker in ("list", "stream")
    ),
    _python(
        "streaq",
        "streaq run PROGRAM:worker",
        blank=tried(prefetch=[0, 100]),
        waiting=tried([SIDE_BY_SIDE], prefetch=[0, 100]),
    ),
    _python(
        "procrastinate",
        _PROCRASTINATE,
        blank=tried(delete_jobs=["never", "always"]),
        waiting=tried([SIDE_BY_SIDE], delete_jobs=["never", "always"]),
        backend="postgres",
    ),
    _python(
        "docket",
        "python -m PROGRAM",
        blank=tried(check_ms=[100, 5]),
        waiting=tried([SIDE_BY_SIDE], check_ms=[100, 5]),
        distribution="pydocket",
        program="docket",
    ),
)
