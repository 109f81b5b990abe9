"""How far a start came: the last line of the healthy chain that stands in the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import Sight, sight

# in the order of a healthy start
STAGES: Final[dict[str, Sight]] = {
    "platform": sight("Automatically detected platform"),
    "architecture": sight("Resolved architecture"),
    "context length": sight("Using max model len"),
    "engine": sight("LLM engine (v"),
    "loading": sight("Starting to load model"),
    "weights read": sight("Loading weights took"),
    "weights loaded": sight("Model loading took"),
    "cache measured": sight("Available KV cache memory", "Available memory for KV cache"),
    "cache made": sight("GPU KV cache size", "CPU KV cache size", "KV cache size:"),
    "graphs": sight("Graph capturing finished"),
    "engine ready": sight("init engine"),
    "listening": sight("Starting vLLM server on", "Starting vLLM API server", "Starting Headway", "main: server is listening"),
    "ready": sight(
        "Application startup complete", "router ready", "fired up and ready to roll", "starting the main loop", "all slots are idle"
    ),
}
SIGHTS: Final = tuple(STAGES.values())


@dataclass(frozen=True, slots=True)
class Startup:
    """`stage`: the last one reached, "" when none was seen. `hit`: its line."""

    stage: str = ""
    hit: Hit | None = None

    @property
    def ready(self) -> bool:
        return self.stage == "ready"

    def reached(self, stage: str) -> bool:
        names = list(STAGES)
        return bool(self.stage) and names.index(self.stage) >= names.index(stage)


def startup_of(log: Log) -> Startup:
    reached = Startup()
    for stage, seen in STAGES.items():
        if hit := log.last(seen):
            reached = Startup(stage, hit)
    return reached
