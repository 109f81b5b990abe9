"""QUESTIONS.json of a Decision 1.0 package: questions that a router asks, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.artifacts.bounded_json import read_json_object
from headway.decisions.question import Option, Question
from headway.runtime.readers.decision1.package import QUESTIONS, Decision1Package
from headway.runtime.readers.unpublished import not_of_the_format


def read_presets(found: Decision1Package) -> dict[str, Question]:
    """A noul with `categories` is one question for each, named `<name>.<category>`. Empty without the file.

    Raises PackageError (`invalid_package`).
    """
    if not (found.folder / QUESTIONS).is_file():
        return {}
    presets: dict[str, Question] = {}
    for name, entry in read_json_object(found.folder / QUESTIONS).items():
        presets.update(_questions(name, entry))
    return presets


def _questions(name: str, entry: Any) -> dict[str, Question]:
    kind = str(entry.get("type", "")).split(",", 1)[0].strip().lower() if isinstance(entry, dict) else ""
    if kind == "choice" and isinstance(entry.get("options"), dict):
        return {name: Question("choice", entry.get("instructions"), tuple(Option(key, text) for key, text in entry["options"].items()))}
    if kind != "noul":
        raise not_of_the_format(QUESTIONS, f"for {name!r:.60} a choice with options, or a noul", entry)
    categories, template = entry.get("categories"), entry.get("instructions_template")
    if isinstance(categories, dict) and isinstance(template, str):
        return {f"{name}.{key}": _noul(template.replace("{text}", str(text)), entry) for key, text in categories.items()}
    return {name: _noul(entry.get("instructions"), entry)}


def _noul(instructions: Any, entry: Mapping[str, Any]) -> Question:
    return Question("noul", instructions, (Option("false", entry.get("false")), Option("true", entry.get("true"))))
