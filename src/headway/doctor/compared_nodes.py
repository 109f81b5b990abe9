"""Facts that each node wrote down, compared as a launch would compare them, with the logs of that launch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.distributed.disagreement import Disagreement
from headway.distributed.node_facts import MOST_BYTES, NodeFacts, read_facts, write_facts
from headway.distributed.preflight import compare
from headway.doctor.evidence.context import Context
from headway.doctor.examine import Examined, examine_known
from headway.errors import DoctorError, LaunchError


@dataclass(frozen=True, slots=True)
class ComparedNodes:
    nodes: tuple[NodeFacts, ...]
    found: tuple[Disagreement, ...]
    examined: Examined


def compare_nodes(files: Sequence[Path], logs: Sequence[Path] = ()) -> ComparedNodes:
    """At least two files of `headway doctor dist --collect`.

    Raises DoctorError (`too_few_nodes`, `facts_unreadable`, `facts_invalid`).
    """
    if len(files) < 2:
        raise DoctorError(
            f"a comparison needs the facts of at least two nodes, got {len(files)}", reason="too_few_nodes",
            fix="Write them with `headway doctor dist --collect FILE` on each node.",
        )  # fmt: skip
    nodes = tuple(sorted((_read(file) for file in files), key=lambda node: node.node))
    context = Context({"nodes": [as_members(node) for node in nodes]})
    return ComparedNodes(nodes, compare(nodes), examine_known(logs, context))


def as_members(node: NodeFacts) -> dict[str, Any]:
    """As it stands in the file."""
    members: dict[str, Any] = json.loads(write_facts(node))
    return members


def _read(file: Path) -> NodeFacts:
    try:
        with file.open("rb") as stream:
            text = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise DoctorError(f"{file} cannot be read: {error.strerror}", reason="facts_unreadable") from None
    try:
        return read_facts(text, str(file))
    except LaunchError as error:
        raise DoctorError(error.message, reason=error.reason) from None
