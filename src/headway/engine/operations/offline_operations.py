"""OfflineOperations: what `LLM` can do to its engine besides asking it. Everything happens in the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.engine.config import EngineConfig
from headway.engine.operations.gate import Gate
from headway.engine.operations.prefix_reset import reset_prefix_cache
from headway.engine.operations.profile import ProfileRun
from headway.engine.operations.sleep import TAGS, Sleep, bring_back, check_tags, fall_asleep, require_sleep_mode
from headway.errors import RequestError

if TYPE_CHECKING:
    from headway.engine.loading import LoadedEngine


class OfflineOperations:
    """For an owner of `config` and `_engine`."""

    config: EngineConfig
    _engine: LoadedEngine
    _sleep: Sleep | None = None
    _profile: ProfileRun | None = None

    def reset_prefix_cache(self, reset_running_requests: bool = False, reset_connector: bool = False) -> bool:
        """Forget all cached prefixes, with `reset_connector` also those that KV offloading keeps; False if something is running."""
        return reset_prefix_cache(self._engine.core, running=reset_running_requests, offloaded=reset_connector)

    def sleep(self, level: int = 1) -> None:
        """Give memory back: the KV cache, and the weights, which level 1 keeps in a file and level 2 forgets. Needs
        `enable_sleep_mode=True`. Raises ConfigError, RequestError, CapacityError; the engine is awake then."""
        require_sleep_mode(self.config, level)
        if self._engine.adapters is not None and len(self._engine.adapters) and level == 2:
            raise RequestError("level 2 forgets the whole engine, and adapters are loaded", param="level", fix="Use level 1.")
        if self._sleep is None:
            self._sleep = fall_asleep(self._engine.core, level)

    def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Bring the parts named by `tags` (weights, kv_cache) back, all by default."""
        wanted = TAGS if tags is None else tags
        check_tags(wanted)
        if self._sleep is not None and bring_back(self._sleep, wanted, self._reload):
            self._sleep = None

    def start_profile(self) -> None:
        """Needs `profiler_config`. Raises HeadwayError (`profile_active`), ConfigError."""
        self._profile = self._profile or ProfileRun(self.config.profiler_config)
        self._profile.start()

    def stop_profile(self) -> None:
        """Write the trace. Raises HeadwayError (`profile_inactive`)."""
        self._profile = self._profile or ProfileRun(self.config.profiler_config)
        self._profile.stop()

    def _require_awake(self) -> None:
        Gate(asleep=self._sleep is not None).require_awake()

    def _reload(self) -> None:
        from headway.engine.loading import load_engine

        old = self._engine
        self._engine = load_engine(self.config, observers=old.core.observers)
        old.forms.close()
