"""Job: one request inside a replica."""

from __future__ import annotations

from headway.bench.simulation.block_budget import Freed


class Job:
    """`known` tokens are prompt and answer so far, `computed` those whose keys are stored; both are up to date while the job waits or prefills.
    While it decodes, `known` is `offset` + the number of the replica's step, and it ends at step `end`.

    `blocks`: held while it prefills, of which the first `adopted` belong to its shared beginning (`holds`). `kept`: its own blocks after a
    preemption. `last`: time of its last token."""

    __slots__ = (
        "adopted", "blocks", "computed", "end", "holds", "index", "kept", "known", "last", "looked_up", "offset", "prefix", "prompt", "shared",
        "started", "target",
    )  # fmt: skip

    def __init__(self, index: int, prompt: int, output: int, prefix: int = -1, shared: int = 0):
        self.index = index
        self.prompt = prompt
        self.target = prompt + output
        self.prefix = prefix
        self.shared = shared
        self.known = prompt
        self.computed = 0
        self.blocks = 0
        self.adopted = 0
        self.holds = False
        self.kept: Freed | None = None
        self.offset = 0
        self.end = -1
        self.started = False
        self.looked_up = False
        self.last = 0.0
