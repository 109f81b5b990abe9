"""Rule trees of a configuration document: conditions on signals, combined by AND, OR and NOT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.letter_case import LOWER_CASE, UPPER_CASE
from headway.router.config.document.node import Node
from headway.router.config.document.numeric_range import NumericPredicate

LEAF_TYPES = (
    "authz",
    "classifier",
    "complexity",
    "context",
    "conversation",
    "domain",
    "embedding",
    "event",
    "fact_check",
    "input_modality",
    "jailbreak",
    "kb",
    "keyword",
    "language",
    "metadata",
    "modality",
    "pii",
    "preference",
    "projection",
    "reask",
    "safety",
    "structure",
    "systemone",
    "user_feedback",
)  # what a condition may name, in the order of the alphabet
LABELLED_TYPES = frozenset(("classifier", "systemone"))  # whose conditions may have a label and on_error
_OTHER_TYPES: Mapping[str, str] = {"decision": "systemone"}


def _leaf_type(found: Any) -> Any:
    return _OTHER_TYPES.get(found, found) if isinstance(found, str) else found


def _below_the_root(node: RuleNode) -> RuleNode:
    """What only the root may be: without conditions, and with a policy for what is unknown."""
    if node.on_unknown is not None:
        raise PydanticCustomError("rule_on_unknown_nested", "on_unknown belongs to the root of the rules")
    if not node.is_leaf and not node.conditions:
        raise PydanticCustomError("rule_node_no_conditions", "{operator} without conditions", {"operator": node.operator or "AND"})
    return node


class RuleNode(Node):
    """A condition (`type`, `name`), or a combination of conditions (`operator`, `conditions`), never both.

    A condition with a `predicate` holds when the number that the signal measured is in its range, whatever the rule itself makes of it. A
    combination without `operator` is AND; operators are read in any case. `on_unknown` belongs to the root; `on_error` (what a signal counts as
    that failed) to conditions on classifiers and systemone questions, and has no meaning beside the root's `on_unknown`; `on_unscanned` (what
    content that was not read counts as) to conditions on systemone questions that want all of it, whose own it replaces.
    """

    type: Annotated[Literal[LEAF_TYPES], BeforeValidator(_leaf_type), LOWER_CASE] | None = None  # type: ignore[valid-type]
    name: str | None = None
    label: str | None = None
    predicate: NumericPredicate | None = None
    on_error: Literal["no_match", "match"] | None = None
    on_unscanned: Literal["match", "no_match", "unknown"] | None = None
    on_unknown: Literal["no_match", "match", "fail_request"] | None = None
    operator: Annotated[Literal["AND", "OR", "NOT"], UPPER_CASE] | None = None
    conditions: list[Annotated[RuleNode, AfterValidator(_below_the_root)]] | None = Field(default=None, max_length=1024)

    @property
    def is_leaf(self) -> bool:
        return self.type is not None

    @model_validator(mode="after")
    def _is_one_thing(self) -> RuleNode:
        told = [key for key in ("type", "name", "label", "predicate", "on_error", "on_unscanned") if getattr(self, key) is not None]
        combines = self.operator is not None or self.conditions is not None
        if told and combines:
            raise PydanticCustomError(
                "rule_node_both", "a node is either a condition or a combination, found {told} beside operator or conditions", {"told": ", ".join(told)}
            )
        if not told and not combines:
            raise PydanticCustomError("rule_node_empty", "an empty node says nothing: give a type and a name, or an operator and conditions")
        if told:
            self._check_leaf()
        else:
            self._check_combination()
        if self.on_unknown is not None and self.sets_on_error:
            raise PydanticCustomError("rule_on_error_dead", "on_error has no meaning below on_unknown: keep one of them")
        return self

    @property
    def sets_on_error(self) -> bool:
        """Whether some condition of the tree says what a failed signal counts as."""
        return self.on_error is not None or any(child.sets_on_error for child in self.conditions or ())

    def _check_leaf(self) -> None:
        if self.type is None or not self.name:
            missing = "type" if self.type is None else "name"
            raise PydanticCustomError("rule_node_incomplete", "a condition needs a type and a name, {missing} is missing", {"missing": missing})
        if self.type not in LABELLED_TYPES:
            for key in ("label", "on_error"):
                if getattr(self, key) is not None:
                    raise PydanticCustomError(
                        "rule_node_key", "{key} is only for conditions on classifier and systemone, found at {type}", {"key": key, "type": self.type}
                    )
        if self.on_unscanned is not None and self.type != "systemone":
            raise PydanticCustomError("rule_node_key", "on_unscanned is only for conditions on systemone, found at {type}", {"type": self.type})
        if self.type == "classifier" and self.label is None:
            raise PydanticCustomError("rule_node_label", "a condition on a classifier needs a label")

    def _check_combination(self) -> None:
        count = len(self.conditions or ())
        if self.operator == "NOT" and count != 1:
            raise PydanticCustomError("rule_not_unary", "NOT has exactly one condition, found {count}", {"count": count})
        if self.operator == "OR" and not count:
            raise PydanticCustomError("rule_node_no_conditions", "OR without conditions")
