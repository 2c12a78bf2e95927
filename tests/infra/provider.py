"""A provider of Terraform's that plans and makes nothing: run by the tools of tests/infra, never imported by a test.

It knows what provider.json says of the resources, so that Terraform itself refuses an argument that none has, and it
plans a name of its own for all that AWS would choose. `python provider.py SOCKET` serves until its input ends.
"""

import itertools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc
import msgpack

PLACE: Final = "eu-west-1:123456789012"
SCHEMAS: Final = json.loads(Path(__file__).with_name("provider.json").read_text())["types"]
SCHEMAS["archive_file"] = {
    "attributes": {
        **{name: ["string", "required"] for name in ("type", "source_dir", "output_path")},
        "output_base64sha256": ["string", "computed"],
    },
    "blocks": {},
}
READ: Final[dict[str, dict[str, str]]] = {
    "aws_caller_identity": {"account_id": "123456789012"},
    "aws_partition": {"partition": "aws", "dns_suffix": "amazonaws.com"},
    "aws_region": {"region": "eu-west-1"},
    "archive_file": {"output_base64sha256": "hash"},
}
CHOSEN: Final = {"id", "name"}
"""By AWS, where nobody does."""
_COUNT: Final = itertools.count()


def field(number: int, value: bytes | str | int) -> bytes:
    """A field of a message of protocol buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number, seven bits to a byte."""
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def fields(data: bytes) -> dict[int, bytes]:
    """The fields of a message that are texts, bytes or messages themselves."""
    found, place = {}, 0
    while place < len(data):
        key, place = read_varint(data, place)
        size, place = read_varint(data, place)
        if key & 7 == 2:
            found[key >> 3] = data[place : place + size]
            place += size
    return found


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """The number there, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = data[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place


def block(schema: dict[str, Any]) -> bytes:
    """A level of a schema."""
    lines = []
    for name, (kind, state) in schema["attributes"].items():
        is_computed = state == "computed" or (state == "optional" and name in CHOSEN)
        flags = b"".join(
            field(number, 1)
            for number, is_set in ((4, state == "required"), (5, state == "optional"), (6, is_computed))
            if is_set
        )
        lines.append(field(2, field(1, name) + field(2, json.dumps(kind)) + flags))
    for name, nested in schema["blocks"].items():
        nesting = {"single": 1, "list": 2, "set": 3}[nested["nesting"]]
        lines.append(field(3, field(1, name) + field(2, block(nested)) + field(3, nesting)))
    return b"".join(lines)


def schema_of(name: str) -> bytes:
    """An entry of the map of schemas."""
    return field(1, name) + field(2, field(2, block(SCHEMAS[name])))


def schemas(_request: bytes) -> bytes:
    """Those of the provider, of resources and of what is only read."""
    provider = {"attributes": {"region": ["string", "optional"]}, "blocks": {}}
    kinds = [(3 if name in READ else 2, name) for name in SCHEMAS]
    return field(1, field(2, block(provider))) + b"".join(field(number, schema_of(name)) for number, name in kinds)


def planned(request: bytes) -> bytes:
    """The proposed state, with names for what AWS would choose."""
    kind, state = message(request, 3)
    number = next(_COUNT)
    for name, (type_, how) in SCHEMAS[kind]["attributes"].items():
        is_open = state.get(name) is None or isinstance(state[name], msgpack.ExtType)
        if type_ == "string" and is_open and (how == "computed" or name in CHOSEN):
            state[name] = f"[{kind}.{number}.{name}]"
    function = f"arn:aws:lambda:{PLACE}:function:"
    if kind == "aws_lambda_function":
        state["arn"] = function + state["function_name"]
    if kind == "aws_lambda_alias":
        state["arn"] = f"{function}{state['function_name']}:{state['name']}"
    return answer(state)


def read(request: bytes) -> bytes:
    """What is only read."""
    kind, state = message(request, 2)
    return answer(state | READ[kind])


def message(request: bytes, number: int) -> tuple[str, dict[str, Any]]:
    """The type of the resource, and a value of it."""
    found = fields(request)
    value = msgpack.unpackb(fields(found[number])[1], strict_map_key=False)
    return found[1].decode(), value


def answer(state: dict[str, Any]) -> bytes:
    """A state as the first field."""
    return field(1, field(1, msgpack.packb(state)))


METHODS: Final = {
    "GetProviderSchema": schemas,
    "PlanResourceChange": planned,
    "ReadDataSource": read,
    **dict.fromkeys(
        (
            "ValidateProviderConfig",
            "ValidateResourceConfig",
            "ValidateDataResourceConfig",
            "ConfigureProvider",
            "StopProvider",
        ),
        lambda _request: b"",
    ),
}


def main(socket: str) -> None:
    """Serve until the input ends."""
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(lambda request, _context, handle=handle: handle(request))
        for name, handle in METHODS.items()
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("tfplugin6.Provider", handlers)])
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main(sys.argv[1])
