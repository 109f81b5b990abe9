"""`vllm-sr completion`: the shell completes commands and options."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

from headway.errors import HeadwayError

_SHELLS = ("bash", "zsh", "fish")
_PROGRAM, _VARIABLE = "vllm-sr", "_VLLM_SR_COMPLETE"
_PLACES = {
    "bash": ".local/share/bash-completion/completions/vllm-sr",
    "zsh": ".local/share/zsh/site-functions/_vllm-sr",
    "fish": ".config/fish/completions/vllm-sr.fish",
}


@click.group("completion")
def completion_group() -> None:
    """Completion of commands and options in the shell."""


@completion_group.command("show")
@click.argument("shell", type=click.Choice(_SHELLS))
def show(shell: str) -> None:
    """Print the script."""
    click.echo(script(shell))


@completion_group.command("install")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.option("--output", type=click.Path(path_type=Path), help="Where to write it, instead of the shell's own place.")
def install(shell: str, output: Path | None) -> None:
    """Write the script where the shell looks for it."""
    place = output or Path.home() / _PLACES[shell]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(script(shell) + "\n", encoding="utf-8")
    except OSError as error:
        raise HeadwayError(f"{place} cannot be written: {error.strerror}", reason="not_written", fix="Name another place with --output.") from error
    click.echo(f"wrote {place}")
    if shell == "zsh":
        click.echo(f"zsh finds it when its fpath has {place.parent}, set before compinit runs.")


def script(shell: str) -> str:
    from headway.cli.sr import vllm_sr

    kind = get_completion_class(shell)
    assert kind is not None
    return kind(vllm_sr, {}, _PROGRAM, _VARIABLE).source().strip()
