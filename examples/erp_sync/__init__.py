"""A shop's webhooks into an ERP that throttles and fails: README.md says how to run it."""
