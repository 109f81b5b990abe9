"""How each doctor command ends: the report in the wanted form and language, what is kept or compared, the exit status."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

if TYPE_CHECKING:
    from headway.doctor.diagnosis import Report
    from headway.doctor.examine import Examined
    from headway.doctor.proof import Proof
    from headway.doctor.words import Language

C = TypeVar("C", bound=Callable[..., Any])

HEALTHY: Final = 0
FINDINGS: Final = 1
COULD_NOT_TELL: Final = 2


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is wanted: as JSON or for people, in which language, kept in a file, compared with a kept one."""

    as_json: bool
    language: Language
    save: Path | None
    apply_check: Path | None


def form_options(command: C) -> C:
    """`--json --lang --save --apply-check`, passed on as one `form`."""

    def wrapped(*args: Any, as_json: bool, language: str | None, save: Path | None, apply_check: Path | None, **more: Any) -> Any:
        return command(*args, form=Form(as_json, spoken(language), save, apply_check), **more)

    wrapped.__doc__, wrapped.__name__ = command.__doc__, command.__name__
    wrapped.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    path = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option("--apply-check", type=path, help="A report kept before a fix: say fixed, not fixed or other cause."),
        click.option("--save", type=path, help="Keep the report for a later --apply-check."),
        click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="Language of the report (default: the system's)."),
        click.option("--json", "as_json", is_flag=True, help="One JSON object."),
    ):
        wrapped = option(wrapped)
    return cast("C", wrapped)


def spoken(language: str | None) -> Language:
    """The language asked for, else that of the system's locale."""
    if language is None:
        locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
        language = "zh" if locale.startswith("zh") else "en"
    return cast("Language", language)


def answer(examined: Examined, form: Form, extra: dict[str, Any] | None = None) -> int:
    """Print the report (`extra`: further members of the JSON); return the exit status."""
    proof: Proof | None = None
    if form.save is not None or form.apply_check is not None:
        from headway.doctor.proof import check, save

        proof = check(examined, form.apply_check) if form.apply_check is not None else None
        if form.save is not None:
            save(examined, form.save, form.language)
    if form.as_json:
        from headway.doctor.report.as_json import proof_object, report_object

        shown = {**(extra or {}), **report_object(examined.report, form.language), **(proof_object(proof, form.language) if proof else {})}
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        from headway.doctor.report.on_screen import show, show_proof

        show(examined.report, Console(), form.language)
        if proof is not None:
            show_proof(proof, Console(), form.language)
    return exit_status(examined.report)


def exit_status(report: Report) -> int:
    if any(finding.is_answer for finding in report.findings):
        return FINDINGS
    return COULD_NOT_TELL if report.abstained else HEALTHY
