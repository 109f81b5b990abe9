"""What a `systemone` template is given: the question as plain JSON values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from headway.artifacts.chat_template import render_template
from headway.decisions.question import Content, Option, Question

_QUESTION_ID: Final = "question"  # the client's own must not influence the answer


def render(
    template: str, kind: str, state: Content, question: Question, options: Sequence[Option], labels: Sequence[str], clean: Callable[[str], str]
) -> str:
    """`options` in the order in which they are shown, `labels` of the same length or empty. `clean` is applied to every text.

    Raises RequestError (`chat_template_error`) for what the template raises.
    """
    shown = [_option(option, labels[place] if labels else None) for place, option in enumerate(options)]
    about = {"id": _QUESTION_ID, "type": question.type, "instructions": question.instructions, "options": shown}
    names: dict[str, Any] = {**about, "state": state, "images": []}
    if kind == "nimble":  # lists all questions of a request; each is asked alone here, so that none changes another
        names["questions"] = [about]
    given = _cleaned(names, clean)
    return render_template(template, _sorted(given) if kind == "lev" else given)


def _option(option: Option, label: str | None) -> dict[str, Any]:
    return {"key": option.key, "description": option.description, **({} if label is None else {"label": label})}


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item, clean) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item, clean) for key, item in value.items()}
    return value


def _sorted(value: Any) -> Any:
    """Keys of all objects in order, as Lev was trained."""
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value
