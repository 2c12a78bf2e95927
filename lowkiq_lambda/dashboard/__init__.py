"""The dashboard: web pages for operators and a JSON API, in one ASGI app. It never drains a queue."""

from lowkiq_lambda.dashboard.app import dashboard
from lowkiq_lambda.dashboard.security.auth import Account, Auth, Token, Visitor
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.dashboard.security.passwords import hashed
from lowkiq_lambda.settings.protocols import Mask

__all__ = ["Account", "Auth", "Mask", "Token", "TrustedClaims", "Visitor", "dashboard", "hashed"]
