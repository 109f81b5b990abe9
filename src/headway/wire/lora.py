"""`POST /v1/load_lora_adapter` and `/v1/unload_lora_adapter`: bodies. The answers are plain text, as in vLLM."""

from __future__ import annotations

from headway.wire.fields import Body


class LoadAdapterBody(Body):
    """`lora_path` is a folder on the machine of the server. `load_inplace`: replace the adapter of that name."""

    lora_name: str
    lora_path: str
    load_inplace: bool = False


class UnloadAdapterBody(Body):
    lora_name: str
    lora_int_id: int | None = None  # of vLLM's; the name says which
