"""`vllm-srun fixture OUTPUT --family F --variant V --seed N`."""

from __future__ import annotations

from pathlib import Path

import click

from headway.errors import ConfigError

DEFAULT_FAMILY = "decision2"


@click.command("fixture")
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--family", default=DEFAULT_FAMILY, show_default=True, help="Family plug-in that writes it.")
@click.option("--variant", default=None, help="Kind of package; absent = the first that the family knows.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32 - 1), help="Seed of the random weights.")
def fixture_command(output: Path, family: str, variant: str | None, seed: int) -> None:
    """Write a tiny package with random weights into the new folder OUTPUT, for tests and first tries."""
    from headway.runtime.plugins import PluginSet

    writer = PluginSet.installed().families.named(family, "family").thing
    variants = list(writer.fixture_variants())
    if not variants:
        raise ConfigError(f"the family {family} writes no fixtures", param="family")
    chosen = variant or variants[0]
    if chosen not in variants:
        raise ConfigError(f"the family {family} has no variant {chosen[:100]!r}; it has {', '.join(variants)}", param="variant")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists and is no empty folder", param="output", fix="Name a new folder.")
    try:
        output.mkdir(parents=True, exist_ok=True)
        writer.write_fixture(output, chosen, seed)
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}", param="output", fix="Name a folder that can be written to.") from None
    click.echo(f"{output}: {family} {chosen}, seed {seed}, random weights")
