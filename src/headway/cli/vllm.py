"""The program `vllm` of the alias, and `python -m vllm.entrypoints.openai.api_server`: Headway's commands."""

from __future__ import annotations

import sys

import click

from headway.cli.main import run
from headway.shim.version import ALIAS_VERSION


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-v"]):
        click.echo(ALIAS_VERSION)
        return
    run("vllm", sys.argv[1:])


def api_server() -> None:
    run("vllm", ["serve", *sys.argv[1:]])
