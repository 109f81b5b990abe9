"""The plan of `POST /v1/classify`: one head, many inputs, each with its own failure."""

from __future__ import annotations

import abc
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from headway.errors import RequestError
from headway.runtime.model_facts import HeadFacts, Overflow
from headway.runtime.row import Outcome, Row
from headway.runtime.tasks.item_plan import Answered, Item, failed_item, input_tokens, run_items
from headway.runtime.tasks.long_input import HeadLimits, LongInput, long_input
from headway.wire.classify import ClassifyInput, ClassifyRequest


class ClassifyHead(abc.ABC):
    """How one head reads inputs. Pure planning, from several threads at once."""

    facts: HeadFacts
    limits: HeadLimits
    policies: Sequence[Overflow]
    finds_spans: bool = False  # takes `threshold` and `return_tokens`

    @abc.abstractmethod
    def plan_items(self, request: ClassifyRequest, reading: LongInput) -> list[Item]:
        """One for each input. An answer is what the entry of the item holds besides `index` and `input`.

        Raises RequestError for an input that the policy of the request cannot treat.
        """


class ClassifyPlanner:
    """`heads` by name, the primary one first."""

    def __init__(self, heads: Sequence[ClassifyHead]):
        self._heads: Mapping[str, ClassifyHead] = {head.facts.name: head for head in heads}
        self._primary = heads[0]

    def __call__(self, request: ClassifyRequest) -> Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]:
        head = self._head(request)
        reading = long_input(request, head.facts, head.limits, head.policies)
        results = yield from run_items(head.plan_items(request, reading))
        entries = [
            {"index": i, **result.value, "input": result.usage.body()} if isinstance(result, Answered) else failed_item(i, result)
            for i, result in enumerate(results)
        ]
        body: dict[str, Any] = {"head": head.facts.name, "kind": head.facts.kind, "labels": list(head.facts.labels), "results": entries,
                                "usage": {"input_tokens": input_tokens(results), "output_tokens": 0}}  # fmt: skip
        if head.finds_spans:
            body["offset_unit"] = "code_point"
        return body

    def _head(self, request: ClassifyRequest) -> ClassifyHead:
        if request.head is None:
            head = self._primary
        elif request.head in self._heads:
            head = self._heads[request.head]
        else:
            raise RequestError(f"head must be one of {', '.join(self._heads)}, found {request.head!r:.80}", param="head")
        if not head.finds_spans:
            for name, given in (("threshold", request.threshold is not None), ("return_tokens", request.return_tokens)):
                if given:
                    raise RequestError(f"{name} is for heads that find spans; head {head.facts.name} is of kind {head.facts.kind}",
                                       param=f"options.{name}")  # fmt: skip
        return head


def unfit(given: ClassifyInput, head: HeadFacts, index: int) -> str:
    """The message for an input of a form that the head does not read."""
    form = {"TextInput": "a pair of texts", "GroundedInput": "a grounded answer"}[type(given).__name__]
    if "grounded" in head.inputs:
        form = "a text"
    return f"input {index} is {form}, head {head.name} reads {' and '.join(head.inputs)}"
