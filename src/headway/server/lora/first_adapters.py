"""The adapters of --lora-modules, loaded when the model is there and before anybody is served."""

from __future__ import annotations

from headway.server.engine_port import EnginePort
from headway.server.lora.adapter_modules import adapter_modules
from headway.server.lora.served_adapters import ServedAdapters
from headway.server.state import ServerState


async def first_adapters(engine: EnginePort, state: ServerState) -> ServedAdapters:
    """Raises ConfigError, RequestError, AdapterError for the first that cannot be served."""
    adapters = ServedAdapters(engine)
    for module in adapter_modules(state.settings.lora_modules, engine.config):
        await adapters.load(module.name, module.path, state.names, base_model=module.base_model_name)
    return adapters
