"""What the KV transfers of one window came to, as the line that vLLM logs about it."""

from __future__ import annotations

from headway.telemetry.transfer_stats import TransferStats


class TransferCounts:
    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._nbytes = 0

    def add(self, transfer: TransferStats) -> None:
        """Those that moved blocks count."""
        if transfer.nbytes:
            self._seconds.append(transfer.seconds)
            self._nbytes += transfer.nbytes

    @property
    def line(self) -> str | None:
        """None where nothing moved. Megabytes are of a million bytes."""
        if not self._seconds:
            return None
        count, total, megabytes = len(self._seconds), sum(self._seconds), self._nbytes / 1e6
        ninth = sorted(self._seconds)[min(count - 1, int(0.9 * count))]
        return (
            f"KV Transfer metrics: Num successful transfers={count}, Avg xfer time (ms)={1e3 * total / count:.3f}, P90 xfer time (ms)={1e3 * ninth:.3f}, "
            f"Avg MB per transfer={megabytes / count:.3f}, Throughput (MB/s)={megabytes / max(total, 1e-9):.3f}"
        )
