"""Payloads of a declared type: which type that is, and how its values go to Redis and come back.

Imported where a worker declares a type: others pay nothing for it.
"""

from lowkiq_lambda.declare.payloads.declared import declared_type
from lowkiq_lambda.declare.payloads.jobs import loader, plain_jobs, plain_payload, wrong_payload
from lowkiq_lambda.declare.payloads.kinds import fingerprint, payload_type

__all__ = ["declared_type", "fingerprint", "loader", "payload_type", "plain_jobs", "plain_payload", "wrong_payload"]
