"""ServedAdapters: the names of adapters that requests may ask for instead of the model's."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from headway.engine.lora.lora_request import LoRARequest
from headway.errors import NotFoundError, RequestError
from headway.server.engine_port import EnginePort

if TYPE_CHECKING:  # servers answer before torch is there
    from headway.engine.lora.adapter import Adapter

_log = logging.getLogger(__name__)
_MOST_CHARACTERS = 256  # of a name


class ServedAdapters:
    """Those of one engine. Lives on one event loop. Loading happens beside it; requests find an adapter when it is ready, and not before."""

    def __init__(self, engine: EnginePort):
        self._engine = engine
        self._by_name: dict[str, Adapter] = {}
        self._numbers = itertools.count(1)
        self._changing = asyncio.Lock()

    @property
    def by_name(self) -> Mapping[str, Adapter]:
        return MappingProxyType(self._by_name)

    async def load(
        self, name: str, path: str, base_names: tuple[str, ...], *, base_model: str | None = None, in_place: bool = False
    ) -> None:
        """Read the adapter and serve it. One that fails changes nothing; requests that run finish with what they began with. `base_names`
        are those of the model.

        Raises RequestError for a name that cannot be used and without --enable-lora, AdapterError for a folder that cannot be used.
        """
        if not name or not path:
            raise RequestError("Both 'lora_name' and 'lora_path' must be provided.", reason="lora_name_invalid", param="lora_name")
        if len(name) > _MOST_CHARACTERS or not name.isprintable():
            raise RequestError(f"lora_name must have 1 to {_MOST_CHARACTERS} printable characters", reason="lora_name_invalid", param="lora_name")
        if name in base_names:
            raise RequestError(f"The lora adapter '{name}' would have the name of the model.", reason="lora_name_invalid", param="lora_name")
        async with self._changing:
            known = self._by_name.get(name)
            if known is not None and not in_place:
                raise RequestError(
                    f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.",
                    reason="lora_already_loaded", param="lora_name",
                )  # fmt: skip
            number = next(self._numbers) if known is None else known.request.lora_int_id
            request = LoRARequest(name, number, path, base_model, load_inplace=in_place)
            self._by_name[name] = await asyncio.to_thread(self._engine.adapters.add, request)
        _log.info("Loaded new LoRA adapter: name '%s', path '%s'", name, path)

    async def unload(self, name: str) -> None:
        """Requests that use it are not touched. Raises NotFoundError."""
        if not name:
            raise RequestError("'lora_name' needs to be provided to unload a LoRA adapter.", reason="lora_name_invalid", param="lora_name")
        async with self._changing:
            adapter = self._by_name.pop(name, None)
            if adapter is None:
                raise NotFoundError(f"The lora adapter '{name[:200]}' cannot be found.", reason="lora_not_found", param="lora_name")
            self._engine.adapters.remove(adapter.request.lora_int_id)
        _log.info("Removed LoRA adapter: name '%s'", name)
