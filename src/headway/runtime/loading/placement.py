"""Where a model runs: which device, whether it fits, whether the device can do what the model needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.capacity.byte_text import byte_text
from headway.errors import ConfigError, PlacementError
from headway.runtime.accelerators.accelerator import Accelerator, Device
from headway.runtime.engines.engine import Engine
from headway.runtime.family import ModelFamily, ModelSpec
from headway.runtime.plugins import Plugin, PluginSet

GIB: Final = 1 << 30
RESERVE_BYTES: Final = 2 * GIB  # activations of the largest batches
BYTES_PER_PARAMETER: Final = 4
DOES_NOT_FIT: Final = "does not fit, out of memory"


@dataclass(frozen=True, slots=True)
class Spot:
    """A device that takes the model, and the engine that runs it there."""

    accelerator: Accelerator
    device: Device
    engine: Engine


def memory_estimate(parameters: int) -> int:
    """Bytes that a model needs while it runs: its weights in float32 and a reserve for activations."""
    return BYTES_PER_PARAMETER * parameters + RESERVE_BYTES


def named_devices(asked: str, plugins: PluginSet) -> list[tuple[Accelerator, Device]]:
    """The devices that `asked` ("auto", "cpu", "cuda", "cuda:1") allows, best first.

    Raises ConfigError (`unknown_plugin`) for a kind that no plug-in knows, PlacementError (`device_not_available`).
    """
    if asked == "auto":
        return _automatic(plugins)
    kind, _, number = asked.partition(":")
    accelerator = plugins.accelerators.named(kind, "accelerator").thing
    if number and not number.isdecimal():
        raise ConfigError(f"--device {asked[:60]!r}: expected a number after the colon", reason="device_invalid", param="device")
    devices = list(accelerator.devices())
    if number:
        devices = [device for device in devices if device.index == int(number)]
    if not devices:
        others = ", ".join(device.name for _, device in _automatic(plugins)) or "none"
        why = accelerator.missing() if not accelerator.devices() else f"it has {', '.join(d.name for d in accelerator.devices())}"
        raise PlacementError(
            f"device not available: {asked}; {why}",
            reason="device_not_available",
            param="device",
            fix=f"Use `--device auto` or one of: {others}.",
        )
    return [(accelerator, device) for device in devices]


def _automatic(plugins: PluginSet) -> list[tuple[Accelerator, Device]]:
    chosen = [p.thing for p in plugins.accelerators.usable() if p.thing.auto_priority is not None]
    chosen.sort(key=lambda accelerator: (accelerator.auto_priority, accelerator.name))
    return [(accelerator, device) for accelerator in chosen for device in accelerator.devices()]


def engines_for(asked: str, plugins: PluginSet) -> list[Plugin[Engine]]:
    """The engines that `asked` allows, in the order in which they are tried. Raises ConfigError (`unknown_plugin`)."""
    if asked != "auto":
        return [plugins.engines.named(asked, "engine")]
    return sorted(plugins.engines.usable(), key=lambda plugin: (plugin.thing.auto_priority, plugin.name))


def place(
    family: ModelFamily,
    spec: ModelSpec,
    devices: Sequence[tuple[Accelerator, Device]],
    engines: Sequence[Plugin[Engine]],
    needs: Sequence[str],
    budget_gib: float | None,
) -> Spot:
    """The first device that an engine serves, that has the capabilities `needs`, and where the model fits.

    Raises PlacementError: `over_budget`, `lacks_capability` (no candidate ever can), `no_engine`, `out_of_memory`.
    """
    need = memory_estimate(spec.parameters)
    if budget_gib is not None and need > budget_gib * GIB:
        raise PlacementError(
            f"{DOES_NOT_FIT}: the model needs about {byte_text(need)}, the memory budget is {budget_gib:g} GiB",
            reason="over_budget",
            param="memory_budget",
            fix="Raise the budget or choose a smaller model.",
        )
    engineless: list[str] = []
    incapable: list[str] = []
    full: list[str] = []
    for accelerator, device in devices:
        refusals = [(p.thing, p.thing.refuses(family, spec, accelerator.name)) for p in engines]
        willing = next((engine for engine, refusal in refusals if refusal is None), None)
        if willing is None:
            engineless += [f"{engine.name}: {refusal}" for engine, refusal in refusals]
            continue
        lacking = [why for capability in needs if (why := accelerator.lacks(device, capability)) is not None]
        if lacking:
            incapable.append(f"{device.name}: {lacking[0]}")
        elif device.free_bytes is not None and need > device.free_bytes:
            full.append(f"{device.name} has {byte_text(device.free_bytes)} free")
        else:
            return Spot(accelerator, device, willing)
    if full:
        raise PlacementError(
            f"{DOES_NOT_FIT}: the model needs about {byte_text(need)}, and {'; '.join(full)}",
            reason="out_of_memory",
            param="device",
            fix="Use a smaller model or a larger device, or stop what else uses its memory.",
        )
    if incapable:
        raise PlacementError("; ".join(incapable), reason="lacks_capability", param="device")
    raise PlacementError(
        f"no engine runs this model: {'; '.join(dict.fromkeys(engineless)) or 'none is installed'}", reason="no_engine", param="engine"
    )
