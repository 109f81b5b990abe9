"""A valid configuration, and what the validator says about changes of it."""

from __future__ import annotations

from typing import Any

import yaml

from headway.router.config.diagnostics import Diagnostic, shown
from headway.router.config.document.document import Document
from headway.router.config.load import Source, examine

BASE = """\
version: v0.3
listeners:
  - {name: public, port: 8899}
providers:
  defaults: {model: small}
  models:
    - name: small
      backend_refs: [{endpoint: "127.0.0.1:8000"}]
    - name: large
      reasoning: {family: qwen3}
      backend_refs: [{endpoint: "127.0.0.1:8001"}]
routing:
  modelCards:
    - {name: small, description: Fast., loras: [{name: small-law}]}
    - {name: large, description: Slow.}
  signals:
    keywords:
      - {name: words, operator: OR, keywords: [sum]}
    context:
      - {name: long, min_tokens: 2K}
    jailbreak:
      - {name: attack, threshold: 0.7}
    systemone:
      - name: topic
        question: {type: choice, instructions: "What is it about?", choices: [{key: law}, {key: art}]}
      - name: harm
        question: {type: noul, instructions: "Is it harmful?"}
  decisions:
    - name: sums
      priority: 10
      rules: {operator: AND, conditions: [{type: keyword, name: words}, {type: systemone, name: topic, label: law}]}
      modelRefs: [{model: small}, {model: large, use_reasoning: true}]
"""


def base() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(BASE)
    return data


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """The valid configuration with a value put where the path leads; mappings are made on the way, an index one beyond the end appends."""
    data = base()
    place: Any = data
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    if isinstance(place, list) and path[-1] == len(place):
        place.append(to)
    else:
        place[path[-1]] = to
    return data


def told(data: dict[str, Any] | str, environment: dict[str, str] | None = None) -> list[Diagnostic]:
    text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
    return list(examine(Source(text), environment or {}).diagnostics)


def errors(data: dict[str, Any] | str) -> list[tuple[str, str]]:
    """(reason, path) of each error."""
    return [(each.reason, shown(each.path)) for each in told(data) if each.severity == "error"]


def document_of(data: dict[str, Any] | str) -> Document:
    text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
    found = examine(Source(text), {})
    assert found.document is not None, "\n".join(map(str, found.diagnostics))
    return found.document
