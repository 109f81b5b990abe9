"""The routes that load and unload adapters. They are there with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1: who may call them chooses what the
server reads."""

from __future__ import annotations

from typing import Final

from headway.server.lora.adapter_handlers import load_lora_adapter, unload_lora_adapter
from headway.server.route import Route
from headway.server.settings import ServerSettings
from headway.wire.lora import LoadAdapterBody, UnloadAdapterBody


def _allowed(settings: ServerSettings) -> bool:
    return settings.allow_runtime_lora_updating


LORA_ROUTES: Final = (
    Route("/v1/load_lora_adapter", ("POST",), load_lora_adapter, LoadAdapterBody, media="text/plain", exists=_allowed),
    Route("/v1/unload_lora_adapter", ("POST",), unload_lora_adapter, UnloadAdapterBody, media="text/plain", exists=_allowed),
)
