"""`vllm-sr config`: a router's configuration as a file, and as it serves."""

from __future__ import annotations

import click

from headway.cli.lazy_group import LazyGroup

_COMMANDS = {
    "init": ("headway.cli.sr_config_init:init_command", "Write a configuration to start from."),
    "validate": ("headway.cli.sr_config_validate:validate_command", "Check a configuration; all errors, with their lines."),
    "migrate": ("headway.cli.sr_config_migrate:migrate_command", "Bring a configuration of an earlier version to v0.3."),
    "schema": ("headway.cli.sr_config_show:schema_command", "Print the JSON Schema of configurations, whole or in parts."),
    "router": ("headway.cli.sr_config_show:router_command", "Print a configuration as the router reads it."),
    "get": ("headway.cli.sr_config_remote:get_command", "Print the configuration of a router."),
    "plan": ("headway.cli.sr_config_remote:plan_command", "Show what a change of a router's configuration would do."),
    "apply": ("headway.cli.sr_config_remote:apply_command", "Change a router's configuration, if it is still the one that was planned for."),
    "versions": ("headway.cli.sr_config_remote:versions_command", "List the configurations that served."),
    "rollback": ("headway.cli.sr_config_remote:rollback_command", "Bring an earlier configuration back, as a new version."),
}
_NOT_BUILT = ("envoy", "import", "propose")


@click.group("config", cls=LazyGroup, table=_COMMANDS, not_built=_NOT_BUILT)
def config_group() -> None:
    """A router's configuration: as a file, and as it serves."""
