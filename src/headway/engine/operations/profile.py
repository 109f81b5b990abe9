"""A profile of the engine's thread by torch's profiler, from one step to another."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headway.engine.operations.profiler_config import KEYS
from headway.errors import ConfigError, HeadwayError

_log = logging.getLogger(__name__)


class ProfileRun:
    """One profile at a time. All methods run on the thread that is profiled."""

    def __init__(self, config: Mapping[str, Any]):
        self._config = {name: config.get(name, default) for name, (_, default) in KEYS.items()}
        self._running: Any = None

    def start(self) -> None:
        """Raises HeadwayError (`profile_active`) when one runs, ConfigError when the server has no folder for traces."""
        if not self._config["torch_profiler_dir"]:
            raise ConfigError(
                "this server was started without a profiler", reason="profiler_disabled", param="profiler_config",
                fix='Start it with --profiler-config \'{"profiler": "torch", "torch_profiler_dir": "FOLDER"}\'.',
            )  # fmt: skip
        if self._running is not None:
            raise HeadwayError("a profile is running", reason="profile_active", fix="POST /stop_profile ends it.")
        Path(self._config["torch_profiler_dir"]).mkdir(parents=True, exist_ok=True)
        self._running = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], with_stack=self._config["torch_profiler_with_stack"],
            record_shapes=self._config["torch_profiler_record_shapes"], profile_memory=self._config["torch_profiler_with_memory"],
        )  # fmt: skip
        self._running.start()
        _log.info("Profiling into %s", self._config["torch_profiler_dir"])

    def stop(self) -> Path:
        """Write the trace (for chrome://tracing or Perfetto); returns its path. Raises HeadwayError (`profile_inactive`)."""
        if self._running is None:
            raise HeadwayError("no profile is running", reason="profile_inactive", fix="POST /start_profile begins one.")
        running, self._running = self._running, None
        running.stop()
        ending = ".json.gz" if self._config["torch_profiler_use_gzip"] else ".json"
        path = Path(self._config["torch_profiler_dir"]) / f"engine-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}{ending}"
        running.export_chrome_trace(str(path))
        _log.info("Profile written to %s", path)
        return path
