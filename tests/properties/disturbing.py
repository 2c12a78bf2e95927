"""A machine that is at work in some of its steps, and disturbed in the others.

Hypothesis takes each rule as often as any other. Of many rules, those that must follow on one another for something to
happen at all hardly ever do: so what disturbs is no rule of its own, but drawn within one.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from hypothesis.strategies import SearchStrategy

Method = TypeVar("Method", bound=Callable[..., object])


def disturbance(
    when: Callable[[Any], object] = lambda _machine: True, **given: SearchStrategy[Any]
) -> Callable[[Method], Method]:
    """Marks what the rule `disturb` may do, where `when` allows it, and what it is given; `data` is its own."""

    def marked(method: Method) -> Method:
        vars(method).update(when=when, given=given)
        return method

    return marked


class DisturbedMachine(RuleBasedStateMachine):
    """Does one of what is marked as a disturbance in each step that is no work."""

    @rule(data=st.data())
    def disturb(self, data: st.DataObject) -> None:
        """Something comes between."""
        methods = {name: method for name in dir(type(self)) if hasattr(method := getattr(type(self), name), "given")}
        names = [name for name, method in methods.items() if method.when(self)]
        name = data.draw(st.sampled_from(names), label="disturbance")
        given = methods[name].given.items()
        drawn = {of: data if of == "data" else data.draw(strategy, label=of) for of, strategy in given}
        getattr(self, name)(**drawn)

    @rule(data=st.data())
    def disturb_once_more(self, data: st.DataObject) -> None:
        """Two rules, so that two steps of three come between where there is one for the work."""
        self.disturb(data)
