"""The app of the load: 31 queues of a shop. Its ids say what their handler does, so nothing outside of it is called."""

from random import Random
from typing import Any, Final

from lowkiq_lambda import Batch, Config, KeepRuns, Lowkiq, Rate, Rejected, Worker
from lowkiq_lambda.base.clock import Clock

FAILS: Final = "fails-"
"""What the ids begin with that fail; behind it stands the number of the kind of their error, and their own."""
REFUSED: Final = "refused-"
"""What the ids begin with that end with a reason of the business."""
KINDS: Final = (
    "HTTPError: 429 Too Many Requests for url https://carrier.example/labels/{}",
    "HTTPError: 503 Service Unavailable for url https://erp.example/orders/{}",
    "TimeoutError: the warehouse did not answer within {} ms",
    "ConnectionResetError: connection {} was reset by the peer",
    "KeyError: 'amount_cents'",
    "ValueError: price {} is below zero",
    "PermissionError: token {} was revoked",
    "LookupError: customer {} is not in the ledger",
    "IntegrityError: duplicate key value {} violates orders_pkey",
    "DeadlockDetected: process {} waits for ShareLock",
    "UnicodeDecodeError: byte {} cannot be decoded",
    "RuntimeError: printer {} is out of paper",
)
FAILING: Final = ("MailCampaign", "SyncErp", "TellSeller")
"""The queues that have the failures."""
WITH_TENANTS: Final = "SyncShop"
BLOCKING: Final = "BookInvoice"
MOVING: Final = "SyncCustomer"
HANGING: Final = "ImportCatalogue"
LEFT: Final = "PrintLabel"
PLANNED: Final = "NightlyReport"
KEEPING: Final = "SyncOrder"
"""The queue that keeps its runs."""
LIMITED: Final = "FetchPrices"
FOLLOWED: Final = "PublishFeed"
"""The queue that has the items of the task."""
NAMES: Final = (
    *(*FAILING, WITH_TENANTS, BLOCKING, MOVING, HANGING, LEFT, PLANNED),
    *("AnonymiseUser", "ArchiveOrder", "CheckStock", "CountClicks", "ExportLedger", "GrantRefund", KEEPING, LIMITED),
    *("IndexProduct", "MailDigest", "MailReceipt", "MatchPayment", "NotifyPicker", "PackParcel", FOLLOWED),
    *("RebuildFacets", "ResizePicture", "ScoreRisk", "SendPush", "SyncStock", "TrackParcel", "WarmCache"),
)
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    WITH_TENANTS: {"tenants": "spread"},
    BLOCKING: {"dead_head": "block", "max_retry_count": 0},
    KEEPING: {"keep_runs": KeepRuns(10_000, payloads=True)},
    LIMITED: {"rate": Rate(30, per=86_400)},
}
BEFORE, AFTER = 8, 12
"""The shards of the queue that moves."""
_HOUR: Final = 3_600.0


def new_app(config: Config | None = None, clock: Clock | None = None) -> Lowkiq:
    """The app, with an entry that fires each ten minutes."""
    made = Lowkiq(config, clock=clock)
    workers = {name: made.worker(_worker(name)) for name in NAMES}
    made.every(600, workers[PLANNED], id="report", name="report")
    return made


def _worker(name: str) -> type[Worker[Any]]:
    delays = Random(name)  # noqa: S311 - protects nothing
    body: dict[str, Any] = {
        "queue_name": name,
        "shards_count": BEFORE if name == MOVING else 4,
        "batch_size": 100,
        # So far away that nothing fails a second time while somebody looks.
        "retry_in": lambda _self, _retry_count: delays.uniform(6 * _HOUR, 72 * _HOUR),
        "perform": lambda _self, batch: _perform(batch),
        **_FIELDS.get(name, {}),
    }
    return type(name, (Worker,), body)


def _perform(batch: Batch) -> None:
    for job_id in batch:
        if job_id.startswith(FAILS):
            _, kind, number = job_id.split("-")
            batch.fail(job_id, KINDS[int(kind)].format(number))
        elif job_id.startswith(REFUSED):
            batch.fail(job_id, Rejected(f"{job_id.removeprefix(REFUSED)} has no picture"))


app: Final = new_app()
"""For `lowkiq doctor local.load.app:app`, and every other command."""
