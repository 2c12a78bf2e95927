"""Distinguishes a deployment from development, and refuses features for development there."""

from collections.abc import Mapping
from typing import Final

from lowkiq_lambda.base.errors import ForDevelopment

_LAMBDA: Final = ("AWS_LAMBDA_FUNCTION_NAME", "LAMBDA_TASK_ROOT")
_CONTAINERS: Final = ("KUBERNETES_SERVICE_HOST", "ECS_CONTAINER_METADATA_URI_V4")
_STAGE: Final = "LOWKIQ_ENV"
"""production, or development: then a container is not a sign of a deployment, as CI and editors use containers too."""


def refuse_in_deployment(what: str, environ: Mapping[str, str]) -> None:
    """Raise ForDevelopment if the environment is that of a deployment; `what` begins the sentence."""
    sign = _sign_of_deployment(environ)
    if sign is None:
        return
    way_out = f", or set {_STAGE}=development" if sign in _CONTAINERS else ""
    raise ForDevelopment(
        f"{what}, and {sign} says that this is a deployment: name a server{way_out}.", setting="redis_url"
    )


def _sign_of_deployment(environ: Mapping[str, str]) -> str | None:
    stage = environ.get(_STAGE, "").strip().lower()
    signs = _LAMBDA if stage == "development" else _LAMBDA + _CONTAINERS
    sign = next((name for name in signs if environ.get(name)), None)
    return f"{_STAGE}=production" if sign is None and stage == "production" else sign
