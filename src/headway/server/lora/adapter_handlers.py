"""The handlers that load and unload adapters while the server runs (VLLM_ALLOW_RUNTIME_LORA_UPDATING=1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from headway.errors import RequestError
from headway.server.intake import read_body
from headway.server.state import state_of
from headway.wire.lora import LoadAdapterBody, UnloadAdapterBody


async def load_lora_adapter(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, LoadAdapterBody)
    check_inside(body.lora_path, state.settings.lora_folders)
    await state.served.adapters.load(body.lora_name, body.lora_path, state.names, in_place=body.load_inplace)
    return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' added successfully.")


async def unload_lora_adapter(request: Request) -> Response:
    state = state_of(request)
    state.require_ready()
    body = await read_body(request, UnloadAdapterBody)
    await state.served.adapters.unload(body.lora_name)
    return PlainTextResponse(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")


def check_inside(path: str, folders: Sequence[str]) -> None:
    """Raises RequestError for a folder, or files in it, that lie outside of `folders` once links are followed. No folders: all may be read."""
    if not folders or not path:
        return
    allowed = [Path(folder).resolve() for folder in folders]
    try:
        folder = Path(path).expanduser()
        parts = [part.resolve() for part in (folder, folder / "adapter_config.json", folder / "adapter_model.safetensors")]
    except (OSError, RuntimeError, ValueError):
        raise _outside() from None
    if not all(any(part.is_relative_to(each) for each in allowed) for part in parts):
        raise _outside()


def _outside() -> RequestError:
    return RequestError(
        "lora_path lies outside of the folders that adapters may be loaded from", reason="lora_path_not_allowed", param="lora_path",
        fix="The operator lists them in HEADWAY_LORA_FOLDERS.",
    )  # fmt: skip
