"""AdapterRegistry: the adapters that there are, by id, and those whose weights are in memory."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Final

import torch

from headway.engine.lora.adapter import Adapter
from headway.engine.lora.lora_request import LoRARequest
from headway.errors import AdapterError, RequestError
from headway.models.lora.adapter_folder import CPU, AdapterWeights, read_adapter
from headway.models.lora.targets import Targets

_log = logging.getLogger(__name__)
MOST_ADAPTERS: Final = 1_000  # that are known at a time, in memory or not


class AdapterRegistry:
    """Reads and checks folders on the thread that asks for them; any thread may.

    Of the adapters that are known, the `most_kept` used last keep their weights. One that was removed or replaced while requests use it
    keeps them until the last of these has ended.
    """

    def __init__(self, targets: Targets, max_rank: int, dtype: torch.dtype, most_kept: int, device: torch.device = CPU):
        self._targets = targets
        self._max_rank = max_rank
        self._dtype = dtype
        self._most_kept = most_kept
        self._device = device
        self._by_id: dict[int, Adapter] = {}
        self._kept: OrderedDict[int, Adapter] = OrderedDict()  # by id, the one used last at the end
        self._lock = threading.Lock()  # guards both; files are read outside of it
        self._reading = threading.Lock()  # one folder at a time, so that memory is bounded

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def num_kept(self) -> int:
        return len(self._kept)

    @property
    def numbers(self) -> set[int]:
        """Ids."""
        return set(self._by_id)

    def add(self, request: LoRARequest) -> Adapter:
        """The adapter of the request's id, read from its folder if the id is new or is to be replaced.

        Raises AdapterError as `read_adapter` does, RequestError for an id that stands for another folder and for one too many.
        """
        with self._reading:
            known = self._by_id.get(request.lora_int_id)
            if known is not None and not request.load_inplace:
                return _same(known, request)
            if known is None and len(self._by_id) >= MOST_ADAPTERS:
                raise RequestError(f"{MOST_ADAPTERS} adapters are loaded, and no more are taken", param="lora_name", fix="Unload one.")
            adapter = Adapter(request, self._read(request))
            with self._lock:
                self._kept.pop(request.lora_int_id, None)
                self._by_id[request.lora_int_id] = adapter
                self._keep(adapter)
        return adapter

    def remove(self, number: int) -> bool:
        """Whether there was one. Requests that use it are not touched."""
        with self._lock:
            self._kept.pop(number, None)
            return self._by_id.pop(number, None) is not None

    def weights(self, adapter: Adapter) -> AdapterWeights:
        """Of an adapter that runs now. Raises AdapterError when they must be read again and the folder holds something else by now."""
        number = adapter.request.lora_int_id
        with self._lock:
            if adapter.weights is not None:
                if self._kept.get(number) is adapter:
                    self._kept.move_to_end(number)
                return adapter.weights
        found = self._read(adapter.request)
        if found.digest != adapter.digest:
            raise AdapterError(
                f"the files of adapter {adapter.name[:100]!r} were changed after it was loaded", reason="adapter_changed", param="lora_path",
                fix="Load it again with load_inplace; --max-cpu-loras keeps more adapters in memory.",
            )  # fmt: skip
        with self._lock:
            adapter.weights = found
            if self._by_id.get(number) is adapter:
                self._keep(adapter)
        return found

    def _keep(self, adapter: Adapter) -> None:
        self._kept[adapter.request.lora_int_id] = adapter
        while len(self._kept) > self._most_kept:
            _, oldest = self._kept.popitem(last=False)
            oldest.weights = None
            _log.debug("adapter %s gave its memory to another", oldest.name)

    def _read(self, request: LoRARequest) -> AdapterWeights:
        return read_adapter(request.lora_path, self._targets, self._max_rank, self._dtype, self._device)

def _same(known: Adapter, request: LoRARequest) -> Adapter:
    if (known.request.lora_name, known.request.lora_path) != (request.lora_name, request.lora_path):
        raise RequestError(
            f"lora_int_id {request.lora_int_id} stands for the adapter {known.name[:100]!r} from {known.request.lora_path[:200]!r}",
            param="lora_int_id", fix="Give every adapter an id of its own, or replace it with load_inplace.",
        )  # fmt: skip
    return known

def enabled(registry: AdapterRegistry | None) -> AdapterRegistry:
    """Raises RequestError for an engine without adapters."""
    if registry is None:
        raise RequestError("LoRA is not enabled", reason="lora_disabled", param="lora_request", fix="Start with --enable-lora (enable_lora=True).")
    return registry
