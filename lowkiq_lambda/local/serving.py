"""The server of an app that a program runs, and the folder for the program's files."""

import os
from pathlib import Path

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import EMBEDDED, is_embedded
from lowkiq_lambda.providers.embedded.shared import attached
from lowkiq_lambda.settings.development import refuse_in_deployment


def server_for(app: Lowkiq, data_dir: Path | None, default: Path) -> Path:
    """Give the app a server, the embedded one where it names none; the folder for files.

    Raises ConfigError and EmbeddedServerError.
    """
    url = app.config.redis_url
    if not app.config.names_server:
        refuse_in_deployment("No Redis is named", os.environ)
        app.core.configure(redis_url=EMBEDDED)
    if data_dir is not None and app.config.redis is None and (url is None or is_embedded(url)):
        app.core.configure(data_dir=str(data_dir.absolute()))
    embedded = attached(app.core.redis_url) if app.config.redis is None else None
    return embedded.data_dir if embedded else data_dir or default
