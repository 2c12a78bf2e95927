"""Puts Python's garbage collector off while a function starts: imported first, and told when all is there.

Imports make tens of thousands of objects that stay for good. As they become more, the collector looks through all of
them again and again and finds nothing to free, which is up to a tenth of a cold start.
"""

import gc
import os

if os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    gc.disable()


def settle() -> None:
    """Let it work again, on what is made from now on."""
    gc.freeze()
    gc.enable()
