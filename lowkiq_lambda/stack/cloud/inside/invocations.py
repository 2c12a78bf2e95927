"""Lambda of the local cloud: our own invocations in place of the emulator's.

The emulator keeps functions, versions, aliases, mappings and rights, and polls queues and streams. Ours are the
environments, retries of events, reserved concurrency of templates and aliases, and what Lambda measures.
"""

import contextvars
import importlib
import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from .environments import Code, Environments, InvocationEnding
from .metrics import CloudMetrics

Function: TypeAlias = dict[str, Any]
"""As the emulator keeps it: `config`, `code_zip` and more."""

_SWEEP: Final = 5.0
_RETRIES: Final = (1.0, 2.0)
"""Seconds between the tries of an event that failed: a sixtieth of Lambda's."""
_THROTTLED: Final = (0.2, 2.0)
"""Seconds, at first and at most, until an event that found no concurrency is tried again. Lambda waits for longer."""
_STREAM_REST: Final = 0.2

logger = logging.getLogger("lowkiq")


class Invocations:
    """Takes the place of parts of `lambda_svc`, the emulator's module."""

    def __init__(self, folder: Path, metrics: CloudMetrics) -> None:
        self._svc: Any = importlib.import_module("ministack.services.lambda_svc")
        self._metrics = metrics
        self._environments = Environments(folder)
        self._poll_streams: Callable[[], bool] = self._svc._poll_dynamodb_streams

    def install(self) -> None:
        """From now on functions run here."""
        self._svc._execute_function_dispatch = self.execute
        self._svc.invoke_async_with_retry = self.start
        self._svc._reserved_concurrency = self.reserved
        self._svc._emit_lambda_metrics = self._count_refusal
        # The emulator polls everything in one thread, which a stream's invocation holds.
        self._svc._poll_dynamodb_streams = lambda: False
        events: Any = importlib.import_module("ministack.services.eventbridge")
        events._dispatch_to_lambda = self._start_by_event
        queues: Any = importlib.import_module("ministack.services.sqs")
        delete = queues._delete_messages_for_esm

        def deleted(url: str, handles: set[str]) -> None:
            delete(url, handles)
            self._metrics.add("AWS/SQS", "NumberOfMessagesDeleted", len(handles), {"QueueName": url.rpartition("/")[2]})

        queues._delete_messages_for_esm = deleted
        provisioners: Any = importlib.import_module("ministack.services.cloudformation.provisioners")
        handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]
        create, update = handlers["create"], handlers["update"]

        def created(logical_id: str, properties: Mapping[str, Any], *rest: Any) -> Any:
            return self._reserve(create(logical_id, properties, *rest), properties)

        def updated(name: str, old: Any, properties: Mapping[str, Any], *rest: Any, **more: Any) -> Any:
            return self._reserve(update(name, old, properties, *rest, **more), properties)

        handlers.update(create=created, update=updated)
        mappings = provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"]
        mappings.update({verb: _with_numbers(mappings[verb]) for verb in ("create", "update")})
        for loop in (self._sweep, self._follow_streams):
            threading.Thread(target=loop, name=loop.__name__, daemon=True).start()

    def execute(
        self,
        function: Function,
        config: Mapping[str, Any],
        event: Any,
        request_id: str,
        started: float,
    ) -> dict[str, Any]:
        """Run an invocation that has its place in the function's concurrency."""

        def current() -> Code:
            # An invocation may wait for its environment, and an update may come meanwhile; versions never change.
            newest = self._svc._functions.get(config["FunctionName"], function)
            newest = newest if config["Version"] == "$LATEST" else function
            return {**newest["config"]}, newest["code_zip"]

        context = {
            "request_id": request_id,
            "invoked_function_arn": config["FunctionArn"],
            "depth": self._svc._invoke_depth.get(),
        }
        at_once = self._svc.executions_in_flight()[1][self._svc._inflight_key(config)]
        self._metrics.add("AWS/Lambda", "ConcurrentExecutions", at_once, {"FunctionName": config["FunctionName"]})
        try:
            environment = self._environments.take(current)
            ending = environment.invoke(event, context)
            self._environments.put_back(environment, current)
        except OSError as error:
            ending = InvocationEnding(None, str(error), "Runtime.ExitError", str(error))
        taken = (time.time() - started) * 1_000
        self._svc._emit_lambda_logs(function, request_id, ending.log, bool(ending.error), int(taken))
        self._metrics.add_invocation(config["FunctionName"], taken, event, failed=bool(ending.error))
        self._metrics.add_log(ending.log)
        result: dict[str, Any] = {"body": ending.value, "log": ending.log}
        if ending.error:
            result |= {"error": True, "body": {"errorMessage": ending.message, "errorType": ending.error}}
        elif _is_partial_of_stream(event, ending.value):
            # The emulator does not know of a part of a stream's batch: all of it comes again.
            result |= {"error": True}
        return result

    def start(self, function: Function, event: Any, arn: str = "") -> None:
        """Take an event that nobody waits for; `arn` as it was named, by an alias or not."""
        arguments = (self._try_until_done, function, event, arn or function["config"]["FunctionArn"])
        threading.Thread(target=contextvars.copy_context().run, args=arguments, daemon=True).start()

    def reserved(self, function: Function, config: Mapping[str, Any]) -> int | None:
        """How many at once: a function's number counts for its versions and aliases together."""
        base = self._svc._functions.get(config["FunctionName"], function)
        reserved = base.get("concurrency")
        number = reserved["ReservedConcurrentExecutions"] if isinstance(reserved, dict) else reserved
        return None if number is None else int(number)

    def _try_until_done(self, function: Function, event: Any, arn: str) -> None:
        """Tries again what failed, and as long as its age allows what was refused; then the failure's destination."""
        name, _, qualifier = arn.partition(":function:")[2].partition(":")
        base = self._svc._functions.get(name, function)
        every = base.get("event_invoke_configs") or {}
        settings = every.get(qualifier or "$LATEST") or every.get("") or base.get("event_invoke_config") or {}
        retries = int(settings.get("MaximumRetryAttempts", 2))
        ends_at = time.monotonic() + int(settings.get("MaximumEventAgeInSeconds", 21_600))
        failures, rest = 0, _THROTTLED[0]
        while True:
            result = self._svc._execute_function_with_config_scope(function, event)
            if not result.get("error"):
                return
            if result.get("throttle"):
                wait = rest * random.uniform(0.5, 1)  # noqa: S311 - spreads what was refused together
                rest = min(rest * 1.5, _THROTTLED[1])
            elif failures < retries:
                wait = _RETRIES[min(failures, 1)]
                failures += 1
            else:
                break
            if time.monotonic() + wait > ends_at:
                break
            time.sleep(wait)
            # As it is then: an update in between gives the event to the new code.
            function = self._newest(function, arn)
        self._metrics.add("AWS/Lambda", "AsyncEventsDropped", 1, {"FunctionName": name})
        target = settings.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if target:
            self._svc._route_async_failure(target, name, event, result)

    def _newest(self, function: Function, arn: str) -> Any:
        newest, config, _ = self._svc._get_func_record_for_ref(arn)
        return self._svc._execution_record_for_config(newest, config) if newest else function

    def _start_by_event(self, arn: str, payload: str) -> None:
        """A schedule or a rule starts a function as an event that nobody waits for."""
        function, config, name = self._svc._get_func_record_for_ref(arn)
        if not function:
            logger.warning("There is no function %s.", name)
            return
        self.start(self._svc._execution_record_for_config(function, config), json.loads(payload), arn)

    def _reserve(self, made: Any, properties: Mapping[str, Any]) -> Any:
        number = properties.get("ReservedConcurrentExecutions")
        self._svc._functions[made[0]]["concurrency"] = None if number is None else int(number)
        return made

    def _count_refusal(self, function_name: str, *, throttle: bool, error: bool, **_: Any) -> None:
        # It is called twice: at the refusal, and with `error` by who asked.
        if throttle and not error:
            self._metrics.add("AWS/Lambda", "Throttles", 1, {"FunctionName": function_name})

    def _sweep(self) -> None:
        while True:
            time.sleep(_SWEEP)
            names = {key[-1] for key in list(self._svc._functions._data)}
            self._environments.sweep(names)

    def _follow_streams(self) -> None:
        while True:
            try:
                processed = self._poll_streams()
            except Exception:
                logger.exception("A stream cannot be read.")
                processed = False
            if not processed:
                time.sleep(_STREAM_REST)


def _with_numbers(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call with numbers and truths of a template's parameters, which the emulator takes for texts."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items()}
        if isinstance(value, str) and re.fullmatch(r"-?\d+|true|false", value):
            return json.loads(value)
        return value

    def called(*arguments: Any, **more: Any) -> Any:
        return call(*(plain(each) if isinstance(each, dict) else each for each in arguments), **more)

    return called


def _is_partial_of_stream(event: Any, answer: Any) -> bool:
    records = event.get("Records") if isinstance(event, dict) else None
    of_stream = bool(records) and isinstance(records, list) and records[0].get("eventSource") == "aws:dynamodb"
    return of_stream and isinstance(answer, dict) and bool(answer.get("batchItemFailures"))
