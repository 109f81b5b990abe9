"""`vllm-sr config migrate`: files of earlier versions."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from headway.errors import ConfigError
from headway.router.config.diagnostics import Diagnostic, shown
from headway.router.config.load import read_source
from headway.router.config.migration.migrate import Migrated, migrate
from headway.router.config.migration.tree import Step


@click.command("migrate")
@click.option("--config", "path", type=click.Path(dir_okay=False, path_type=Path), default=Path("config.yaml"), show_default=True, help="The file to read.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The file to write. [default: CONFIG.migrated.yaml]")
@click.option("--in-place", is_flag=True, help="Write the file itself.")
@click.option("--force", is_flag=True, help="Replace an output that is there.")
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 when the file has to be migrated.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def migrate_command(path: Path, output: Path | None, in_place: bool, force: bool, check: bool, as_json: bool) -> None:
    """Bring a configuration of versions 0.1 to 0.4 to v0.3; comments and order stay.

    Prints the difference, what was done, and what a person has to do. A file that is replaced is kept beside it as NAME.bak. Exit code 1 when
    something is left to do. Migrating the result again changes nothing.
    """
    if in_place and output is not None:
        raise ConfigError("--in-place and --output are two different places", param="output", fix="Give one of them.")
    source = read_source(path)
    found = migrate(source)
    target = path if in_place else output or path.with_name(f"{path.stem}.migrated{path.suffix}")
    backup = None
    if not check:
        backup = _written(target, found.text, replace=force or in_place)
    if as_json:
        click.echo(json.dumps(_as_json(found, target, backup, check), indent=2, ensure_ascii=False))
    else:
        _print(found, target, backup, check)
    if not found.complete or (check and found.diff):
        sys.exit(1)


def _written(target: Path, text: str, *, replace: bool) -> Path | None:
    """The backup of what was there. An equal file is left alone."""
    try:
        if target.exists():
            if target.read_text(encoding="utf-8") == text:
                return None
            if not replace:
                raise ConfigError(f"{target} is there already", param="output", fix="Pass --force to replace it; a copy is kept.")
            backup = _free(target)
            shutil.copy2(target, backup)
            target.write_text(text, encoding="utf-8")
            return backup
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}", param="output", fix="Give --output with a place that can.") from None
    return None


def _free(target: Path) -> Path:
    """`config.yaml.bak`, or the first `.bak.N` that is not there: a backup never replaces another."""
    names = (target.with_name(f"{target.name}.bak{f'.{number}' if number else ''}") for number in range(10_000))
    return next(name for name in names if not name.exists())


def _print(found: Migrated, target: Path, backup: Path | None, check: bool) -> None:
    if not found.diff:
        click.echo("Nothing to migrate." if found.complete else "Nothing more can be migrated.")
    else:
        click.echo(found.diff, nl=False)
        click.echo(f"\n{'Would be done' if check else 'Done'}:")
        for step in found.done:
            click.echo(f"  {step}")
    by_hand = [f"{step}{_line_of(step, found.remaining)}" for step in found.open]
    for heading, left in (("Left to do by hand:", by_hand), ("Still wrong in the result:", told_once(found.remaining, found.open))):
        if left:
            click.echo(f"\n{heading}", err=True)
            for each in left:
                click.echo(f"  {each}", err=True)
    for warning in told_once(found.warnings):
        click.echo(f"warning: {warning}", err=True)
    if not check and found.diff:
        click.echo(f"\nWrote {target}." + (f" What was there before is {backup}." if backup else ""))


def told_once(diagnostics: Sequence[Diagnostic], by_hand: Sequence[Step] = ()) -> list[str]:
    """One line for each sentence, however many places it holds for, and none for what a step told of already."""
    groups: dict[tuple[str, str | None], list[Diagnostic]] = {}
    for each in diagnostics:
        if not any(_is_about(each, step) for step in by_hand):
            groups.setdefault((each.message, each.fix), []).append(each)
    return [str(first) + _elsewhere(more) for first, *more in groups.values()]


def _is_about(diagnostic: Diagnostic, step: Step) -> bool:
    """Whether it is what the step tells, or a part of it."""
    place = shown(diagnostic.path)
    return place == step.path or place.startswith((f"{step.path}.", f"{step.path}["))


def _line_of(step: Step, diagnostics: Sequence[Diagnostic]) -> str:
    line = next((each.line for each in diagnostics if _is_about(each, step)), None)
    return f" (line {line})" if line is not None else ""


def _elsewhere(more: Sequence[Diagnostic]) -> str:
    places = [f"line {each.line}" if each.line is not None else shown(each.path) for each in more]
    return f" (also {', '.join(places)})" if places else ""


def _as_json(found: Migrated, target: Path, backup: Path | None, check: bool) -> dict[str, object]:
    return {
        "complete": found.complete,
        "changed": bool(found.diff),
        "output": None if check else str(target),
        "backup": str(backup) if backup else None,
        "done": [{"path": step.path, "message": step.message} for step in found.done],
        "open": [{"path": step.path, "message": step.message} for step in found.open],
        "remaining": [each.as_json() for each in found.remaining],
        "diff": found.diff,
    }
