"""Text signals of a configuration document: what needs no model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import re2
from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.letter_case import LOWER_CASE, UPPER_CASE
from headway.router.config.document.names import Name
from headway.router.config.document.node import Node, not_supported
from headway.router.config.document.numeric_range import NumericPredicate

Words = Annotated[list[Annotated[str, Field(min_length=1, max_length=1024)]], Field(min_length=1, max_length=10_000)]


class KeywordRule(Node):
    """Words and phrases in the latest user turn (in all user turns with `include_history`).

    `method`: regex finds them as they are (with up to `fuzzy_threshold` edits if `fuzzy_match`), bm25 scores each keyword as a document against
    the text, ngram compares character n-grams.
    """

    name: Name
    operator: Annotated[Literal["AND", "OR", "NOR"], UPPER_CASE]
    keywords: Words
    case_sensitive: bool = False
    method: Annotated[Literal["regex", "bm25", "ngram"], LOWER_CASE] = "regex"
    fuzzy_match: bool = False
    fuzzy_threshold: int = Field(default=2, ge=0, le=10)
    bm25_threshold: float = Field(default=0.1, ge=0)
    ngram_threshold: float = Field(default=0.4, gt=0, le=1)
    ngram_arity: int = Field(default=3, ge=1, le=8)
    include_history: bool = False

    @model_validator(mode="after")
    def _words_are_there(self) -> KeywordRule:
        if not all(word.strip() for word in self.keywords):
            raise PydanticCustomError("keyword_blank", "a keyword of white space would never be found")
        if self.fuzzy_match and self.method != "regex":
            raise PydanticCustomError("keyword_fuzzy", "fuzzy_match goes with method regex, found {method}", {"method": self.method})
        return self


class LanguageRule(Node):
    """`name` is an ISO 639 code (en, zh, pt). `threshold` 0 stands for the default."""

    name: Name
    description: str | None = None
    threshold: float = Field(default=0.0, ge=0, le=1)


_TOKEN_COUNT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kKmM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def token_count(text: str) -> int:
    """`8001`, `32K` (thousands) or `1.5M` (millions) as a number. Raises ValueError."""
    found = _TOKEN_COUNT.fullmatch(text.strip())
    if found is None or (count := float(found["number"]) * _UNITS[found["unit"].lower()]) >= 2**63:
        raise ValueError(text)
    return round(count)


def _token_count(found: Any) -> Any:
    if isinstance(found, int | float) and not isinstance(found, bool):
        found = format(found, "f").rstrip("0").rstrip(".") if isinstance(found, float) else str(found)
    if isinstance(found, str):
        try:
            token_count(found)
        except ValueError:
            raise PydanticCustomError("token_count", "expected a number of tokens such as 8001, 32K or 1.5M, found {found}", {"found": found}) from None
    return found


TokenCount = Annotated[str, BeforeValidator(_token_count)]


class ContextRule(Node):
    """Both ends belong to the range; a missing one is open."""

    name: Name
    min_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None
    description: str | None = None

    @model_validator(mode="after")
    def _is_a_range(self) -> ContextRule:
        if self.min_tokens is None and self.max_tokens is None:
            raise PydanticCustomError("context_open", "a context rule needs min_tokens or max_tokens")
        if self.min_tokens is not None and self.max_tokens is not None and token_count(self.min_tokens) > token_count(self.max_tokens):
            raise PydanticCustomError("context_empty", "min_tokens is above max_tokens")
        return self


def _pattern(text: str) -> str:
    try:
        re2.compile(text, _quiet())
    except re2.error as error:
        found = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        raise PydanticCustomError("pattern", "not a regular expression of the RE2 syntax: {error}", {"error": found}) from None
    return text


def _quiet() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


class StructureSource(Node):
    type: Literal["regex", "keyword_set", "sequence", "text_bytes"]
    pattern: Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_pattern)] | None = None
    keywords: Words | None = None
    case_sensitive: bool = False
    sequences: Annotated[list[Words], Field(min_length=1, max_length=1024)] | None = None

    @model_validator(mode="after")
    def _has_what_it_reads(self) -> StructureSource:
        for type, key in (("regex", "pattern"), ("keyword_set", "keywords"), ("sequence", "sequences")):
            if (self.type == type) != (getattr(self, key) is not None):
                needs = "needs" if self.type == type else "does not read"
                raise PydanticCustomError("structure_source", "source {type} {needs} {key}", {"type": self.type, "needs": needs, "key": key})
        return self


class StructureFeature(Node):
    type: Literal["exists", "count", "density", "sequence"]
    source: StructureSource

    @model_validator(mode="after")
    def _fits_its_source(self) -> StructureFeature:
        if (self.type == "sequence") != (self.source.type == "sequence"):
            raise PydanticCustomError("structure_sequence", "feature sequence goes with source sequence and with no other")
        if self.source.type == "text_bytes" and self.type != "count":
            raise PydanticCustomError("structure_bytes", "source text_bytes needs feature count, found {type}", {"type": self.type})
        return self


class StructureRule(Node):
    """`exists` and `sequence` say yes or no; `count` and `density` are numbers that need a predicate."""

    name: Name
    description: str | None = None
    feature: StructureFeature
    predicate: NumericPredicate | None = None

    @model_validator(mode="after")
    def _predicate_fits(self) -> StructureRule:
        _check_predicate(self.feature.type, self.predicate)
        return self


def _check_predicate(feature: str, predicate: NumericPredicate | None) -> None:
    if feature == "exists" and predicate is not None:
        raise PydanticCustomError("predicate_unwanted", "feature exists takes no predicate")
    if feature in ("count", "density") and predicate is None:
        raise PydanticCustomError("predicate_missing", "feature {feature} needs a predicate", {"feature": feature})


_ABSENT_SOURCES: Mapping[str, str] = {
    "tool_choice_required": "tool_choice is not looked at; set metadata in the client and use a metadata signal",
    "tool_choice_none": "tool_choice is not looked at; set metadata in the client and use a metadata signal",
    "flow_tool_state": "there are no flows; active_tool_loop tells of a loop of tool calls that goes on",
}


def _known_source(found: Any) -> Any:
    if isinstance(found, str) and found in _ABSENT_SOURCES:
        raise not_supported(f"conversation source {found}", _ABSENT_SOURCES[found])
    return found


ConversationSourceType = Literal["message", "tool_definition", "assistant_tool_call", "assistant_tool_cycle", "active_tool_loop", "image_content"]


class ConversationSource(Node):
    type: Annotated[ConversationSourceType, BeforeValidator(_known_source)]
    role: Literal["user", "assistant", "system", "developer", "tool", "non_user"] | None = None

    @model_validator(mode="after")
    def _role_fits(self) -> ConversationSource:
        if self.role is not None and self.type != "message":
            raise PydanticCustomError("conversation_role", "role goes with source message, found {type}", {"type": self.type})
        return self


class ConversationFeature(Node):
    type: Literal["count", "exists"]
    source: ConversationSource


class ConversationRule(Node):
    name: Name
    description: str | None = None
    feature: ConversationFeature
    predicate: NumericPredicate | None = None

    @model_validator(mode="after")
    def _predicate_fits(self) -> ConversationRule:
        _check_predicate(self.feature.type, self.predicate)
        return self


class EventRule(Node):
    """Matches when at least one of its criteria does."""

    name: Name
    description: str | None = None
    event_types: Words | None = None
    severities: list[Annotated[Literal["critical", "high", "medium", "low"], LOWER_CASE]] | None = None
    action_codes: Words | None = None
    temporal: bool = False

    @model_validator(mode="after")
    def _asks_for_something(self) -> EventRule:
        if not (self.event_types or self.severities or self.action_codes or self.temporal):
            raise PydanticCustomError("event_empty", "an event rule needs event_types, severities, action_codes or temporal")
        return self


class MetadataPredicate(Node):
    equals: str | None = None
    in_: list[str] | None = Field(default=None, alias="in", min_length=1)
    exists: bool | None = None

    @model_validator(mode="after")
    def _is_one_question(self) -> MetadataPredicate:
        if sum(part is not None for part in (self.equals, self.in_, self.exists)) != 1:
            raise PydanticCustomError("metadata_predicate", "exactly one of equals, in and exists is needed")
        return self


class MetadataRule(Node):
    name: Name
    description: str | None = None
    key: Annotated[Name, Field(max_length=128)]
    predicate: MetadataPredicate


class InputModalityRule(Node):
    name: Name
    description: str | None = None
    modality: Literal["text", "image", "audio", "video"]


class Subject(Node):
    kind: Literal["User", "Group"]
    name: Name


class RoleBinding(Node):
    """Conditions of type `authz` may name the role, or the binding."""

    name: Name
    description: str | None = None
    subjects: Annotated[list[Subject], Field(min_length=1)]
    role: Name
