"""The ingest function: makes jobs of what comes in from SQS, EventBridge, S3 and streams of DynamoDB.

A record has come in when its jobs are written; until then its source keeps it.
"""

import logging
from typing import Any

from lowkiq_lambda.aws.environment import Environment, answering, environment
from lowkiq_lambda.aws.ingesting import Failures, ingest
from lowkiq_lambda.aws.logs import Context, logged
from lowkiq_lambda.aws.sources import Retrying, arrived
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.settings.aws import Settings

logger = logging.getLogger(__name__)


class IngestFailed(LowkiqError):
    """What the event tells of could not be pushed; Lambda hands it over again."""


@logged
def handler(event: object, context: Context) -> dict[str, Any]:
    """Push the jobs that the app's mapping functions make of the event.

    Returns the records of a queue or a stream that are to come again, as Lambda takes it: the event source mapping must
    have ReportBatchItemFailures, else they are lost. Raises IngestFailed where the whole event is to come again,
    UnknownSource, and, before anything is pushed, ConfigError or AppNotFound.
    """
    with answering(context):
        warm = environment()
        return _ingested(warm, event, context)


def _ingested(warm: Environment, event: object, context: Context) -> dict[str, Any]:
    app = warm.app
    if app.config.when_unavailable != "raise":
        # A record is taken out of its source when its jobs are in Redis, and not before.
        app.core.configure(when_unavailable="raise")
    retrying, records = arrived(event)
    failures = ingest(app, records, warm.settings.inbox_arn)
    failures.log()
    if failures:
        _publish(len(failures.identifiers), warm.settings, context.function_name)
    logger.info("ingested", extra={"records": len(records), "failed": len(failures.identifiers)})
    return _answer(retrying, failures)


def _publish(failed: int, settings: Settings, function_name: str) -> None:
    """Publish how many records failed, as an answer that names them is not an error to Lambda."""
    if settings.metrics != "none":
        from lowkiq_lambda.aws.logs import publish  # noqa: PLC0415 - imported lazily: cold start

        publish(settings.metrics_namespace, function_name, None, {"records_failed": failed})


def _answer(retrying: Retrying, failures: Failures) -> dict[str, Any]:
    if retrying == "event":
        if failures:
            raise IngestFailed(f"{IngestFailed()} {failures.first}") from failures.first
        return {}
    # A stream begins anew at the first that is named.
    identifiers = failures.identifiers[:1] if retrying == "stream" else failures.identifiers
    return {"batchItemFailures": [{"itemIdentifier": identifier} for identifier in identifiers]}
