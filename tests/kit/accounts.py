"""Accounts of the dashboards in tests."""

from lowkiq_lambda.dashboard import Account, Auth

OPERATOR, READER = "open sesame, please", "only to look at it"
AUTH = Auth([Account("olga", OPERATOR, "operator"), Account("rita", READER, "reader")])
