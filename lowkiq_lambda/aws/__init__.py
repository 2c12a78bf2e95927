"""Entrances for AWS Lambda: the drain function, the ingest function, the dashboard, and what they stand on."""

try:
    # The first compiled module that any of them needs.
    import msgspec as _msgspec  # noqa: F401 - as said above
except ImportError:
    from lowkiq_lambda.base.target import refuse_other_runtime

    refuse_other_runtime()
    raise
