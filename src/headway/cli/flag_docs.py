"""Writes docs/flags.md from the tables: `python -m headway.cli.flag_docs > docs/flags.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.cli.flag_help import effect, shown_default, shown_name, shown_span, spellings
from headway.cli.serve_config import ALL_FLAGS
from headway.engine.flags_old import OLD_SPELLINGS
from headway.flags.environment import KNOWN
from headway.flags.flag import Flag
from headway.runtime.environment import OF_THE_ROUTER, READ, REMOVED
from headway.runtime.flags import SRUN_FLAGS

_HEAD = """# Flags of `headway serve`

Made from the tables by `python -m headway.cli.flag_docs > docs/flags.md`; do not edit by hand.

Dashes and underscores are the same. A switch `--x` has a form `--no-x`. JSON values may be given in parts:
`--override-generation-config.temperature 0.2`. Sizes take units: `4k` = 4000, `4K` = 4096, `2GiB`. `--config FILE` reads
flags from YAML; flags on the command line win over it, both win over environment variables.

Flags of vLLM whose feature does not exist yet are known: they end the program with code 2 and say what is missing.
"""


_SRUN_HEAD = """# Flags of `vllm-srun serve`

What they mean is told in [runtime.md](runtime.md). Flags on the command line win over environment variables, keys of an
entry of the models file win over both.
"""


def flag_docs(flags: Sequence[Flag] = ALL_FLAGS) -> str:
    return "\n".join([_HEAD, *_built(flags), *_others(flags), *_old(), *_environment(), _SRUN_HEAD, *_built(SRUN_FLAGS), *_srun_environment()])


def _built(flags: Sequence[Flag]) -> Iterator[str]:
    for group in dict.fromkeys(flag.group for flag in flags if flag.is_built):
        yield f"## {group}\n"
        yield "| flag | default | what it does |\n|---|---|---|"
        for flag in flags:
            if flag.is_built and flag.group == group:
                names = ", ".join(f"`{name}`" for name in [shown_name(flag), *spellings(flag)])
                default = shown_default(flag)
                yield f"| {_cell(names)} | {f'`{default}`' if default else ''} | {_cell(f'{flag.help} {shown_span(flag)}'.rstrip())} |"
        yield ""


def _others(flags: Sequence[Flag]) -> Iterator[str]:
    for status, title in (
        ("accepted", "Accepted without effect"),
        ("not built", "Not built yet"),
        ("refused", "Refused"),
    ):
        yield f"## {title}\n"
        yield "| flag | values that work | |\n|---|---|---|"
        for flag in flags:
            if flag.status == status:
                works = [
                    str(value) for value in (flag.default, *flag.harmless) if value not in (None, (), {}, "", False)
                ]
                names = ", ".join(f"`{name}`" for name in [shown_name(flag), *spellings(flag)])
                yield f"| {_cell(names)} | {', '.join(works)} | {_cell(effect(flag).partition(': ')[2])} |"
        yield ""


def _old() -> Iterator[str]:
    yield "## Old spellings\n\nThey work and draw a warning.\n\n| old | now |\n|---|---|"
    for old, renamed in OLD_SPELLINGS.items():
        value = "" if renamed.value is None else f" {renamed.value}"
        yield f"| `--{old}` | `--{renamed.new}{value}` |"
    yield ""


def _environment() -> Iterator[str]:
    yield "## Environment variables of vLLM\n\nUnknown `VLLM_*` variables draw a warning with the nearest known name.\n"
    yield "| variable | effect |\n|---|---|"
    for name, known in KNOWN.items():
        yield f"| `{name}` | {known.effect}{': ' + known.note if known.note else ''} |"
    yield ""


def _srun_environment() -> Iterator[str]:
    yield "## Environment variables of the model runtime\n\nUnknown `VLLM_SRUN_*` variables draw a warning with the nearest known name.\n"
    yield "| variable | effect |\n|---|---|"
    for name, effect_of in READ.items():
        yield f"| `{name}` | {effect_of} |"
    for name in sorted(OF_THE_ROUTER):
        yield f"| `{name}` | read by the router |"
    for name, why in REMOVED.items():
        yield f"| `{name}` | none: {why} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(flag_docs(), end="")
