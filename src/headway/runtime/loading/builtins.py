"""The hub models that the worker knows by name, at a pinned commit; the table is `builtins.json`.

The files of a commit are checked against the digests that the hub has of them. Source of the pins: the tables of
vLLM-SR's runtime in github.com/vllm-project/semantic-router (registry/tables, decisionRuntimeCatalog.generated.json).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from headway.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Builtin:
    """`parameters` is None where the source does not tell."""

    repo: str
    revision: str
    backbone: str
    parameters: int | None

    @property
    def short_name(self) -> str:
        return self.repo.rpartition("/")[2]


@cache
def builtins() -> tuple[Builtin, ...]:
    """In the order of the table."""
    table = json.loads(files("headway.runtime.loading").joinpath("builtins.json").read_text("utf-8"))
    return tuple(Builtin(repo, **fields) for repo, fields in table.items())


def builtin_named(name: str) -> Builtin | None:
    """The entry of a repository, or of a bare name that only one entry has.

    Raises ArtifactError (`ambiguous_model`) for a bare name of several entries.
    """
    for each in builtins():
        if each.repo == name:
            return each
    alike = [each for each in builtins() if each.short_name.lower() == name.lower()]
    if len(alike) > 1:
        raise ArtifactError(
            f"{name} is the name of several models: {', '.join(each.repo for each in alike)}",
            reason="ambiguous_model",
            param="model",
            fix="Give the full name.",
        )
    return alike[0] if alike else None
