"""One routed request when everything is up, and why the router answered it as it did."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.compose.stack import ProcessDeclaration

_SECONDS = 120.0
_MOST_BYTES = 1 << 20
_SHOWN_CHARACTERS = 300
_SHOWN_SIGNALS = 8
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy: it is our own process


@dataclass(frozen=True, slots=True)
class Routed:
    """What was asked, what came back and what a preview of the same request says. `problem` instead when there was no answer."""

    question: str
    answer: str = ""
    headers: Mapping[str, str] | None = None
    preview: Mapping[str, Any] | None = None
    seconds: float = 0.0
    problem: str | None = None


def demonstrate(router: ProcessDeclaration, question: str, most_tokens: int = 32) -> Routed:
    """Never raises: a stack that is up stays up when its first request fails."""
    body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": question}], "max_tokens": most_tokens, "temperature": 0}
    began = time.monotonic()
    try:
        answer, headers = _post(f"{router.base_url}/chat/completions", body)
        text = str(answer["choices"][0]["message"]["content"])
        took = time.monotonic() - began
        preview, _ = _post(f"{router.health_url.removesuffix('/ready')}/api/v1/routing/preview", {"text": question})
    except urllib.error.HTTPError as error:
        return Routed(question, problem=f"it was answered with status {error.code}: {error.read(_MOST_BYTES).decode(errors='replace')[:_SHOWN_CHARACTERS]}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        return Routed(question, problem=f"there was no answer: {error}")
    return Routed(question, text, headers, preview, took)


def explanation(routed: Routed) -> list[str]:
    """The request, its answer, and the reason for the model, as lines for a person."""
    lines = ["", "A request through the router:", f"  > {routed.question}"]
    if routed.problem is not None:
        return [*lines, f"  {routed.problem}"]
    headers, preview = routed.headers or {}, routed.preview or {}
    model = headers.get("x-vsr-selected-model", "?")
    shown = " ".join(routed.answer.split())[:_SHOWN_CHARACTERS]
    decision = headers.get("x-vsr-selected-decision")
    types = preview.get("signal_types", {})
    matched = [f"{types.get(group, group)}:{name}" for group, names in preview.get("decision_result", {}).get("matched_signals", {}).items() for name in names]
    lines += [f"  < {shown}", f"  {model} answered in {routed.seconds:.1f} s. Why {model}:"]
    if decision:
        lines.append(f'    decision "{decision}" won, because these signals matched: {", ".join(matched[:_SHOWN_SIGNALS]) or "(none; it is a catch-all)"}')
        lines.append(f"    {model} was chosen by {headers.get('x-vsr-selected-algorithm', '?')}: {preview.get('selection_reason', '')}")
    else:
        lines.append("    no decision matched, so the default model answers")
    errors = preview.get("signal_errors") or {}
    if errors:
        lines.append(f"    signals without an answer: {', '.join(f'{key} ({reason})' for key, reason in errors.items())}")
    lines.append(f"    routing took {headers.get('x-vsr-routing-latency-ms', '?')} ms")
    return lines


def _post(url: str, body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with _direct.open(request, timeout=_SECONDS) as response:
        found: dict[str, Any] = json.loads(response.read(_MOST_BYTES))
        return found, {name.lower(): value for name, value in response.headers.items()}
