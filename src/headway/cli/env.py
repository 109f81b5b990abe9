"""`headway env`: what this machine and this installation are, and which kernels run."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from typing import Any, Final

import click

from headway import __version__
from headway.doctor.collect.environment import environment_part

_PACKAGES: Final = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "fastapi", "uvicorn")


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def env_command(as_json: bool) -> None:
    """Show the machine, the versions, the environment and the kernels, as a bug report needs them. Secrets are masked."""
    found = environment()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for title, lines in found.items():
        click.echo(title)
        for name, value in lines.items():
            click.echo(f"  {name:<18}{value}")


def environment() -> dict[str, dict[str, Any]]:
    """Sections of names and values; imports torch, which decides about threads and GPUs."""
    import torch

    from headway.host.cpu_budget import cpu_budget
    from headway.host.instruction_set import instruction_set
    from headway.host.memory_budget import memory_budget

    processor, memory = instruction_set(), memory_budget()
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return {
        "Headway": {"version": __version__, "python": f"{platform.python_version()} ({sys.executable})", "system": platform.platform()},
        "Machine": {
            "processor": processor.model, "instructions": " ".join(sorted(processor.flags)) or "unknown", "threads": str(cpu_budget()),
            "memory": f"{memory.available / 2**30:.1f} of {memory.limit / 2**30:.1f} GiB free, limited by {memory.limited_by}",
            "GPUs": ", ".join(gpus) or "none that torch can use",
        },
        "Kernels": _kernels(),
        "Packages": {name: _version(name) for name in _PACKAGES},
        "Variables": environment_part(),
    }  # fmt: skip


def _kernels() -> dict[str, str]:
    from headway.kernels.choice import wants_triton
    from headway.kernels.native.library import VARIABLE, chosen_set, native_library
    from headway.kernels.triton.place import NAME, triton_place

    library, chosen = native_library(), f"{NAME} on {triton_place()}" if wants_triton() else chosen_set()
    found = {"active": "torch" if chosen is None else chosen, "usable": ", ".join((*library.sets, "torch"))}
    if library.missing is not None:
        found["missing"] = library.missing
    return found | {"choose with": f"{VARIABLE}=auto|torch|{'|'.join(library.sets)}".rstrip("|")}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"

