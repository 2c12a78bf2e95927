"""Another process, for a side that must not share the interpreter of the measuring one."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def away(function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
    """What the function returns when it is called in a process of its own, which starts anew."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()
