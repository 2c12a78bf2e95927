"""The last verdict of housekeeping on each queue, if the app has its queues verified."""

from collections.abc import Iterator, Sequence

from lowkiq_lambda.core import Core
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.promises import DATA
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.verify.record import read_records
from lowkiq_lambda.views.verification import Verified


def verify_findings(core: Core, states: Sequence[QueueState]) -> Iterator[Finding]:
    """A finding for each queue that housekeeping verifies. Raises BackendError."""
    if not core.housekeeping.verifies:
        return
    names = [state.name for state in states]
    for state, record in zip(states, read_records(core.backend, names, core.config.redis_retry_for), strict=True):
        # A queue without a record: the finding about duties says whether the duty comes.
        if record is not None:
            yield _of_queue(state.name, record.verified(state.now))


def _of_queue(name: str, verified: Verified) -> Finding:
    mark: Mark = "broken" if verified.found else "warning" if verified.deleted else "ok"
    sentence, advice = verified.says, ""
    if verified.violations:
        last = verified.violations[-1]
        sentence = f"{sentence}; the last violation: {last}"
        advice = f"See docs/runbooks/violations.md; the journal is kept in {last.evidence}."
    elif verified.deleted:
        advice = "Find out who deletes keys on this server: a deleted journal proves nothing."
    return Finding(
        section="work",
        check="verify",
        mark=mark,
        says=sentence,
        advice=advice,
        about=name,
        promises=DATA if verified.found else (),
    )
