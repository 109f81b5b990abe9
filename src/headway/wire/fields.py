"""Field types of request bodies: strict where Python is lax, and null means absent."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator


def _whole(value: Any) -> Any:
    """5.0 is the integer 5, as some JSON writers know floats only; 1.5, "5" and true are not integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _token_map(value: Any) -> Any:
    """JSON object keys are strings; token ids are integers."""
    if not isinstance(value, dict):
        return value
    return {int(k) if isinstance(k, str) and k.removeprefix("-").isdecimal() else k: v for k, v in value.items()}


Whole = Annotated[int, BeforeValidator(_whole)]
FromMinusOne = Annotated[int, Field(ge=-1), BeforeValidator(_whole)]
FromOne = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
Number = float  # strict mode: integers are taken, booleans and strings are not
TokenId = Annotated[
    Whole, Field(description="a token id of the model's vocabulary", json_schema_extra={"minimum": 0})
]
_BIAS = {"type": "object", "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}, "propertyNames": {"pattern": "^[0-9]+$"}}
TokenBias = Annotated[dict[int, Number], BeforeValidator(_token_map), WithJsonSchema(_BIAS)]


def told(**limits: float) -> Any:
    """Limits for the API description only; whoever uses the value checks it."""
    return Field(json_schema_extra=dict(limits))


class Body(BaseModel):
    """A request body. Unknown fields are ignored, explicit nulls count as absent, types are strict."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data
