"""The server of a demo."""

import os
from pathlib import Path

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.base.address import EMBEDDED
from lowkiq_lambda.local.serving import server_for
from lowkiq_lambda.providers.embedded.shared import attach
from lowkiq_lambda.providers.embedded.url import default_folder


def server_for_demo(app: Lowkiq, data_dir: Path | None) -> Path:
    """As `server_for`, whatever this machine is: a demo keeps nothing that anybody would miss."""
    if app.config.redis_url is None:
        if data_dir is not None:
            app.core.configure(redis_url=f"{EMBEDDED}{data_dir.absolute()}")
        app.core.configure(redis_url=attach(app.config, os.environ).url)
    return server_for(app, data_dir, default_folder())
