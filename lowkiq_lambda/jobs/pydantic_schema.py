"""How Pydantic checks and writes a value of the library, so that a route of FastAPI may name it as its answer."""

from typing import Any

import msgspec
from pydantic_core import core_schema


def schema_of(value_type: type[msgspec.Struct], handler: Any) -> Any:  # noqa: ANN401 - both are of Pydantic
    """The schema of an object with these fields; a value of the type itself is accepted, too."""
    fields = {
        field.name: core_schema.typed_dict_field(handler.generate_schema(field.type), required=field.required)
        for field in msgspec.structs.fields(value_type)
    }
    as_object = core_schema.typed_dict_schema(fields, config={"title": value_type.__name__})
    from_value = core_schema.no_info_before_validator_function(
        lambda value: msgspec.structs.asdict(value) if isinstance(value, value_type) else value, as_object
    )
    return core_schema.no_info_after_validator_function(
        lambda values: value_type(**values),
        from_value,
        serialization=core_schema.plain_serializer_function_ser_schema(msgspec.structs.asdict, return_schema=as_object),
    )
