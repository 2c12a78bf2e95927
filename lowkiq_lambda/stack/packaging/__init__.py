"""Puts the package of a Lambda function together: locked packages, lowkiq_lambda, the app, and bytecode of it all.

It needs nothing but the standard library, pip, and an index of packages.
"""
