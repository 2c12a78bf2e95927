"""A server for an app that names none."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.config import without_password
from lowkiq_lambda.local.embedded import open_embedded

logger = logging.getLogger(__name__)


@contextmanager
def server_for(app: Lowkiq, data_dir: Path | None, default: Path) -> Iterator[Path]:
    """The app has a server inside the block, one of our own where it names none; gives the folder for files."""
    if app.config.redis_url is not None:
        yield data_dir or default
        return
    named = app.config.data_dir
    with open_embedded(data_dir or (Path(named) if named else None)) as embedded:
        app.configure(redis_url=embedded.url)
        logger.info("embedded server", extra={"data": embedded.data_dir, "url": without_password(embedded.url)})
        yield embedded.data_dir
