"""Jobs that commit with a database transaction: a table of SQLAlchemy, and a worker that pushes its rows."""

from lowkiq_lambda.contrib.outbox.outbox import Outbox
from lowkiq_lambda.contrib.outbox.relay import OutboxBlocked
from lowkiq_lambda.contrib.outbox.rows import Waiting

__all__ = ["Outbox", "OutboxBlocked", "Waiting"]
