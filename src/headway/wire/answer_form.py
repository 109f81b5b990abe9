"""The request fields that say what form an answer must have; completions and chat completions share them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from headway.wire.fields import Body


class TextFormat(Body):
    type: Literal["text"]


class JsonObjectFormat(Body):
    type: Literal["json_object"]


class JsonSchema(Body):
    """`strict` false is taken too: an answer that fits the schema is what was asked for in both cases."""

    name: str
    description: str | None = None
    schema_: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Body):
    type: Literal["json_schema"]
    json_schema: JsonSchema


class StructuralTagFormat(Body):
    """`format`, or `structures` and `triggers`, as xgrammar defines them."""

    model_config = ConfigDict(extra="allow")

    type: Literal["structural_tag"]


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat | StructuralTagFormat, Field(discriminator="type")]


class AnswerForm(Body):
    """At most one of them may ask for a form. Their contents are checked by StructuredOutputs and by the grammar compiler."""

    response_format: ResponseFormat | None = None
    structured_outputs: dict[str, Any] | None = None
    guided_json: dict[str, Any] | str | None = None  # these four: the names of older versions of vLLM
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
