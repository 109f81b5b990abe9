"""How each doctor command ends: the report in the wanted form and language, and the exit status."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

if TYPE_CHECKING:
    from headway.doctor.diagnosis import Report
    from headway.doctor.words import Language

C = TypeVar("C", bound=Callable[..., Any])

HEALTHY: Final = 0
FINDINGS: Final = 1
COULD_NOT_TELL: Final = 2


def language_option(command: C) -> C:
    return click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="Language of the report (default: the system's).")(command)


def json_option(command: C) -> C:
    return click.option("--json", "as_json", is_flag=True, help="One JSON object.")(command)


def spoken(language: str | None) -> Language:
    """The language asked for, else that of the system's locale."""
    if language is None:
        locale = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
        language = "zh" if locale.startswith("zh") else "en"
    return cast("Language", language)


def answer(report: Report, as_json: bool, language: str | None) -> int:
    """Print the report; return the exit status."""
    if as_json:
        from headway.doctor.report.as_json import report_json

        click.echo(report_json(report, spoken(language)))
    else:
        from rich.console import Console

        from headway.doctor.report.on_screen import show

        show(report, Console(), spoken(language))
    return exit_status(report)


def exit_status(report: Report) -> int:
    if any(finding.is_answer for finding in report.findings):
        return FINDINGS
    return COULD_NOT_TELL if report.abstained else HEALTHY
