"""What speculative drafts of one window came to, as the line that vLLM logs about it."""

from __future__ import annotations

from collections.abc import Iterable


class DraftCounts:
    def __init__(self) -> None:
        self.drafts = self.proposed = 0
        self._reached: list[int] = []  # by position: drafts of which so many tokens were accepted, or more

    def add(self, drafts: Iterable[tuple[int, int]]) -> None:
        """Tokens proposed and accepted of each."""
        for proposed, accepted in drafts:
            self.drafts += 1
            self.proposed += proposed
            self._reached += [0] * (proposed - len(self._reached))
            for position in range(accepted):
                self._reached[position] += 1

    def line(self, seconds: float) -> str:
        """Of at least one draft, over that many seconds."""
        accepted = sum(self._reached)
        positions = ", ".join(f"{count / self.drafts:.3f}" for count in self._reached)
        return (
            f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / self.drafts:.2f}, Accepted throughput: {accepted / seconds:.2f} tokens/s, "
            f"Drafted throughput: {self.proposed / seconds:.2f} tokens/s, Accepted: {accepted} tokens, Drafted: {self.proposed} tokens, "
            f"Per-position acceptance rate: {positions}, Avg Draft acceptance rate: {100 * accepted / self.proposed:.1f}%"
        )
