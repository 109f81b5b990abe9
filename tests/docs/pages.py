"""The fenced blocks of the documentation, and what their tags promise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = {"sh", "bash", "console", "shell", "python"}
TAGS = {"run", "serve", "alone", "make", "bench", "hub"}
_FENCE = re.compile(r"^```(\w*) ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block. `tag`: run, serve (a server for the rest of the page), alone (needs no server), make (targets), bench (options only),
    hub (a download, which a test answers on loopback)."""

    page: Path
    line: int
    language: str
    tag: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])
        for found in _FENCE.finditer(text)
    ]
