"""Which of the labels of a model means what a rule names."""

from __future__ import annotations

from collections.abc import Mapping


def plain(label: str) -> str:
    """`Computer Science`, `computer-science` and `computer_science` are one label."""
    return "_".join(label.strip().casefold().replace("-", " ").replace("_", " ").split())


def by_plain_name(labels: Mapping[str, float]) -> dict[str, float]:
    """Labels that are written in two ways keep the larger number."""
    found: dict[str, float] = {}
    for label, value in labels.items():
        name = plain(label)
        found[name] = max(value, found.get(name, value))
    return found


def renamed(labels: Mapping[str, float], other_names: Mapping[str, str]) -> dict[str, float]:
    """By plain names, those of `other_names` (plain name -> name) turned into the one that rules use."""
    return by_plain_name({other_names.get(plain(label), label): value for label, value in labels.items()})
