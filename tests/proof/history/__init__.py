"""Histories from outside, and the checker of all of them. It knows no server, no engine, and no test.

Pushers, handlers and whoever does harm append lines of JSON to one file, each line in one write: a *history*. A line
is an `Event`. Its fields:

| field | content |
| --- | --- |
| `at` | seconds of the machine's monotonic clock, which all processes share |
| `what` | one of the kinds below |
| `process` | the process that the line is about; 0 for all of them |
| `id` | the job, the task or the schedule that the line is about |
| `numbers` | payload numbers, which are scores too; numbers of items; planned times |
| `token` | the fencing token that the handler has |
| `scope` | the lease that the token is of, for `evicted` and for limits |
| `outcome` | see the kinds |
| `repeated` | whether the handler is told that an earlier delivery may have run; absent if nobody noted it |
| `due` | the time before which nobody performs the payloads, if the push has one |
| `expires` | the time after which nobody performs the payloads, if the push has one |

| kind | meaning | needs |
| --- | --- | --- |
| `push-begin` | a pusher is about to send these payloads of an id, in this order | id, numbers |
| `push-end` | its answer: outcome `ok`, `refused` (nothing is written) or `unknown` (anything may be) | id, numbers |
| `begin` | a handler has these payloads of an id | id, numbers |
| `end` | that call ends: outcome `done`, `failed`, or `stale` (it has outlived its lease) | id |
| `holds` | the handler runs, and is not told to stop | id |
| `settled` | the server has acknowledged that the payloads of a run are done | id, token |
| `write` | the handler writes these payloads elsewhere, under its token; outcome is what | id, numbers, token |
| `died` | the process has ended | process |
| `frozen`, `thawed` | the process stands still, and goes on | process |
| `evicted` | the lease is taken from the token, and from all before it | scope, token |
| `fault` | any other harm to the process; process 0 is harm to all | process |
| `left` | a look at the end: these payloads lie in the queue; outcome `waiting` or `dead` | id, numbers |
| `item-begin` | items of the task `id` are registered; outcome is the status that they must get | id, numbers |
| `item-end` | items have ended; the outcome is their status | id, numbers |
| `completed` | the task's callback is performed | id |
| `planned` | planned times of a schedule; outcome is the rule for missed ones: `all`, `once` or `skip` | id, numbers |
| `fired` | the payload of a planned time is performed | id, numbers |

A push without a `push-end`, or with `unknown`, stays open for ever: its payloads may have been written, at any time
since. `check` goes through the lines once, in the order of time; it is linear but for sorting them.
"""

from tests.proof.history.checker import CLAIMS, Verdict, check
from tests.proof.history.claims import Claim, Terms, Violation
from tests.proof.history.events import Event, Recorder

__all__ = ["CLAIMS", "Claim", "Event", "Recorder", "Terms", "Verdict", "Violation", "check"]
