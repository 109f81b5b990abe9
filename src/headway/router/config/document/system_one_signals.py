"""Rules that ask a decision model a question of one's own."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.model_signals import Label, Share, Text
from headway.router.config.document.node import Node
from headway.router.config.document.numeric_range import NumericPredicate

Key: TypeAlias = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]


class SystemOneOption(Node):
    """An option of a choice, a label of a set or span, or what `false` or `true` of a noul means."""

    key: Key
    description: str | None = None


class SystemOneQuestion(Node):
    """choice: 2 to 255 `choices`; noul: `choices` with the keys false and true, or none; score: 2 to 10 `levels`, lowest first; set and span: 1 to
    255 `labels`, and a `threshold`; `head` is for spans."""

    type: Literal["choice", "noul", "score", "set", "span"]
    instructions: Text
    choices: list[SystemOneOption] = Field(default=[], max_length=255)
    levels: list[Text] = Field(default=[], max_length=10)
    labels: list[SystemOneOption] = Field(default=[], max_length=255)
    threshold: Share | None = None
    head: Literal["router", "broad"] | None = None

    @model_validator(mode="after")
    def _fields_of_its_type(self) -> SystemOneQuestion:
        own, least = _FIELDS[self.type]
        foreign = [name for name in ("choices", "levels", "labels", "threshold", "head") if name not in own and getattr(self, name) not in (None, [])]
        if foreign:
            raise PydanticCustomError("field", "a {type} question does not take {foreign}", {"type": self.type, "foreign": ", ".join(foreign)})
        if len(getattr(self, own[0])) < least:
            raise PydanticCustomError("options", "a {type} question needs at least {least} {field}", {"type": self.type, "least": least, "field": own[0]})
        keys = self.keys
        if len(set(keys)) != len(keys):
            raise PydanticCustomError("options", "keys must be distinct")
        if self.type == "noul" and not set(keys) <= {"false", "true"}:
            raise PydanticCustomError("options", "the choices of a noul question have the keys false and true")
        return self

    @property
    def keys(self) -> list[str]:
        """What conditions may name as `label`, for choice, set and span."""
        return [option.key for option in (self.labels or self.choices)]


_FIELDS: dict[str, tuple[tuple[str, ...], int]] = {
    "choice": (("choices",), 2),
    "noul": (("choices",), 0),
    "score": (("levels",), 2),
    "set": (("labels", "threshold"), 1),
    "span": (("labels", "threshold", "head"), 1),
}


class SystemOneRule(Node):
    """`coverage: full` reads the whole input, up to the scan budget, instead of its beginning; what is still unread then counts as `on_unscanned`
    says. `deployment` is the decision model unless it names another."""

    name: Label
    description: str | None = None
    deployment: Text | None = None
    question: SystemOneQuestion
    predicate: NumericPredicate | None = None
    timeout_ms: int | None = Field(default=None, ge=0, le=60_000)
    coverage: Literal["routing", "full"] = "routing"
    on_unscanned: Literal["match", "no_match", "unknown"] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> SystemOneRule:
        if self.question.type == "score" and self.predicate is None:
            raise PydanticCustomError("predicate", "a score question needs a predicate on its expected level")
        if self.on_unscanned is not None and self.coverage != "full":
            raise PydanticCustomError("on_unscanned", "on_unscanned needs coverage: full")
        return self
