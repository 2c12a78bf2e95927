"""Servers and functions on AWS, as every process of an app may need them: settings, credentials, invocations."""
