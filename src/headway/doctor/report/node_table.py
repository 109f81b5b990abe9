"""The facts of several nodes side by side; what differs stands out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from headway.distributed.node_facts import NodeFacts
from headway.doctor.words import Language, Words

_ROWS: Final[tuple[tuple[Words, Callable[[NodeFacts], str]], ...]] = (
    (Words("model", "模型"), lambda node: _model(node)),
    (Words("address", "地址"), lambda node: f"{node.address or '-'} ({node.interface or '?'})"),
    (Words("chosen by", "选择依据"), lambda node: node.chosen_by),
    (Words("node 0 at", "node 0 位于"), lambda node: node.master),
    (Words("CPUs", "CPU"), lambda node: str(node.cpus)),
    (Words("memory", "内存"), lambda node: f"{node.memory_bytes / 2**30:.1f} GiB"),
    (Words("/dev/shm", "/dev/shm"), lambda node: "-" if node.shm_bytes < 0 else f"{node.shm_bytes / 2**20:.0f} MiB"),
)
_OWN: Final = ("address", "chosen by")  # these differ by nature


def node_table(nodes: Sequence[NodeFacts], language: Language) -> Table:
    """A row for each fact, a column for each node."""
    table = Table("", *(_clean(node.label) for node in nodes), box=None)
    for name, values, is_own in _rows(nodes, language):
        style = "" if is_own or len(set(values)) == 1 else "bold yellow"
        table.add_row(_clean(name), *(Text(_clean(value), style=style) for value in values))
    return table


def _rows(nodes: Sequence[NodeFacts], language: Language) -> Iterator[tuple[str, list[str], bool]]:
    for package in sorted({name for node in nodes for name in node.versions}):
        yield package, [node.versions.get(package, "-") for node in nodes], False
    for flag in sorted({name for node in nodes for name in node.settings}):
        values = [node.settings.get(flag, "-") for node in nodes]
        if len(set(values)) > 1 or flag.endswith(("parallel-size", "--nnodes", "--dtype")):
            yield flag, values, False
    for words, value in _ROWS:
        yield words.speak(language), [value(node) for node in nodes], words.en in _OWN


def _model(node: NodeFacts) -> str:
    """A short digest over all files."""
    if not node.model:
        return "-"
    whole = hashlib.sha256(repr(sorted(node.model.items())).encode()).hexdigest()
    return f"{len(node.model)} files, {whole[:8]}"


def _clean(text: str) -> str:
    """Files come from elsewhere: nothing that a terminal would obey."""
    return "".join(letter for letter in text if letter.isprintable())
