"""The web pages for operators, as an ASGI app: they read, and do what operators may do; they never drain."""

from lowkiq_lambda.dashboard.app import dashboard
from lowkiq_lambda.dashboard.security.auth import Account, Auth, Token, Visitor
from lowkiq_lambda.dashboard.security.claims import TrustedClaims
from lowkiq_lambda.dashboard.security.passwords import hashed
from lowkiq_lambda.protocols import Mask

__all__ = ["Account", "Auth", "Mask", "Token", "TrustedClaims", "Visitor", "dashboard", "hashed"]
