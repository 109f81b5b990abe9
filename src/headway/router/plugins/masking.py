"""masking: personal data is replaced by placeholders before a backend sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway.errors import HeadwayError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import MaskingPlugin
from headway.router.deployments.calls import Answered, FoundSpan
from headway.router.generation.services import Services
from headway.router.plugins.message_texts import texts_of, with_texts
from headway.router.plugins.models import asking
from headway.router.plugins.personal_data import PersonalData, personal_data_source
from headway.router.plugins.plugin import Plugin
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe


class MaskingUnavailableError(HeadwayError):
    """Some text could not be searched for personal data, so nothing is sent."""

    reason = "masking_unavailable"


class Masking(Plugin):
    """The same value gets the same placeholder everywhere in a request, different values different ones. What was replaced is remembered nowhere:
    placeholders that come back in an answer stay."""

    type = "masking"
    fails_closed = True

    def __init__(self, source: PersonalData, threshold: float, entity_types: Sequence[str], placeholders: Mapping[str, str]) -> None:
        self._source = source
        self._threshold = threshold
        self._only = {name.casefold() for name in entity_types}
        self._templates = {name.casefold(): template for name, template in placeholders.items()}

    def deployments(self) -> frozenset[str]:
        return frozenset((self._source.deployment,))

    async def before(self, context: RequestContext) -> Reply | None:
        """Raises MaskingUnavailableError."""
        messages = context.body.get("messages")
        if not isinstance(messages, list):
            return None
        texts = list(dict.fromkeys(text for text in texts_of(messages) if text.strip()))
        if not texts:
            return None
        with asking(context) as calls:
            answers = await self._source.find(calls, texts)
        placeholders = _Placeholders(self._templates)
        masked: dict[str, str] = {}
        for text, answer in zip(texts, answers, strict=True):
            if not isinstance(answer, Answered) or not answer.read_all:
                raise MaskingUnavailableError(
                    "personal data cannot be masked now, so the request was not sent",
                    fix="Try again, shorten the text, or see the deployment of bindings.pii_classifier.",
                )
            masked[text] = self._masked(text, answer.value, placeholders)
        for entity, count in placeholders.counts.items():
            context.generation.services.metrics.count("headway_pii_masked", context.decision_name or "", entity, by=count)
        context.body = {**context.body, "messages": with_texts(messages, lambda text: masked.get(text, text))}
        return None

    def _masked(self, text: str, spans: Sequence[FoundSpan], placeholders: _Placeholders) -> str:
        pieces, end = [], 0
        for label, start, stop in _united([span for span in spans if self._concerns(span)], len(text)):
            pieces += [text[end:start], placeholders.of(label, text[start:stop])]
            end = stop
        return "".join([*pieces, text[end:]])

    def _concerns(self, span: FoundSpan) -> bool:
        return span.score >= self._threshold and (not self._only or _plain(span.label) in self._only)


class _Placeholders:
    """Of one request, numbered by type from 0."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self._templates = templates
        self._known: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}

    def of(self, label: str, value: str) -> str:
        entity = _plain(label)
        if (entity, value) not in self._known:
            index = self.counts[entity] = self.counts.get(entity, 0) + 1
            template = self._templates.get(entity, f"[{entity.upper()}_{{index}}]")
            self._known[entity, value] = template.replace("{index}", str(index - 1))
        return self._known[entity, value]


def _plain(label: str) -> str:
    """Without the letters of a tagging scheme."""
    return label.casefold().removeprefix("b-").removeprefix("i-")


def _united(spans: Sequence[FoundSpan], length: int) -> list[tuple[str, int, int]]:
    """Spans that overlap become one, of the type with the highest score among them: no letter of any of them stays."""
    united: list[tuple[str, int, int, float]] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        start, stop = max(0, span.start), min(length, span.end)
        if start >= stop:
            continue
        if united and start < united[-1][2]:
            label, first, last, score = united.pop()
            if span.score > score:
                label, score = span.label, span.score
            united.append((label, first, max(last, stop), score))
        else:
            united.append((span.label, start, stop, span.score))
    return [(label, start, stop) for label, start, stop, _ in united]


def compile_masking(configuration: MaskingPlugin, decision: Decision, recipe: Recipe, services: Services) -> Masking | None:
    if not configuration.enabled:
        return None
    source = personal_data_source(recipe)
    return Masking(source, configuration.threshold or source.threshold, configuration.entity_types, configuration.placeholders)
