"""What probes saw, as lines of text: a log like any other, so that the same rules read it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Transcript:
    """`lines` in the order of the probes. It is read as a log named `probes` and stands in the context as `host.probes`."""

    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.extend(line.splitlines())

    def as_bytes(self) -> bytes:
        return "\n".join(self.lines).encode()
