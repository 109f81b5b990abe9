"""`vllm-srun models`, `plugins` and `devices`: what there is to choose from."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from headway.errors import ConfigError


@click.command("models")
def models_command() -> None:
    """List the models that are known by name: name, revision, backbone, parameters."""
    from headway.artifacts.registry import registry
    from headway.runtime.loading.builtins import builtins

    for model in registry().values():
        click.echo(f"{model.name}@{model.revision}  {model.about}")
    for each in builtins():
        count = "parameters not recorded" if each.parameters is None else f"{each.parameters} parameters"
        click.echo(f"{each.repo}@{each.revision}  {each.backbone}  {count}")


@click.command("plugins")
def plugins_command() -> None:
    """List the plug-ins that are installed, as JSON: group -> sorted names."""
    from headway.runtime.plugins import PluginSet

    found = PluginSet.installed()
    groups = (found.families, found.engines, found.accelerators)
    click.echo(json.dumps({group.group: list(group.by_name) for group in groups}, indent=2))
    for sentence in (sentence for group in groups for sentence in group.broken()):
        click.echo(f"vllm-srun: {sentence}", err=True)


@click.command("devices")
def devices_command() -> None:
    """List the devices of this machine, as JSON, and the one that `--device auto` tries first."""
    from headway.runtime.loading.placement import named_devices
    from headway.runtime.plugins import PluginSet

    plugins = PluginSet.installed()
    found = []
    for plugin in plugins.accelerators.usable():
        found += [{"accelerator": plugin.name, **asdict(device)} for device in plugin.thing.devices()]
    try:
        automatic = next((device.name for _, device in named_devices("auto", plugins)), None)
    except ConfigError:
        automatic = None
    click.echo(json.dumps({"devices": found, "auto": automatic}, indent=2))
