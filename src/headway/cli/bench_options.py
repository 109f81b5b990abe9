"""Options that the bench commands share, as tables; nothing here measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from headway.bench.prompts import DATASETS, DatasetOptions
from headway.errors import ConfigError, NotBuiltError

Command = TypeVar("Command", bound=Callable[..., Any])

# dataset -> field of DatasetOptions -> default. `--<dataset>-<field>` sets it, `--<field>` sets it for any dataset.
_FIELDS: dict[str, dict[str, int | float | None]] = {
    "random": {"input_len": 1024, "output_len": 128, "range_ratio": 0.0, "prefix_len": 0},
    "sharegpt": {"output_len": None},
    "sonnet": {"input_len": 550, "output_len": 150, "prefix_len": 200},
    "prefix_repetition": {"prefix_len": 256, "suffix_len": 256, "prefix_count": 10, "output_len": 128},
}
_SPELLING = {"prefix_count": "num_prefixes"}
_ANY = (
    ("--input-len", "--input-tokens", "Input length in tokens, for any dataset that has one."),
    ("--output-len", "--output-tokens", "Output length in tokens, for any dataset."),
    ("--prefix-len", "--prefix-tokens", "Length of the shared beginning, for any dataset that has one."),
)


class ManyValues(click.Command):
    """A command whose options in `many` take several values after one flag, as argparse's nargs="+" does."""

    many = ("--goodput", "--metadata")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        flag: str | None = None
        fresh = False  # the flag itself was the last thing written
        for arg in args:
            if arg.startswith("--"):
                flag, fresh = (arg if arg in self.many else None), True
            elif flag is not None and not fresh:
                spread.append(flag)
            else:
                fresh = False
            spread.append(arg)
        return super().parse_args(ctx, spread)


def dataset_options(command: Command) -> Command:
    """--dataset-name, --dataset-path, --num-prompts, --seed and the lengths of every dataset."""
    for dataset, fields in reversed(_FIELDS.items()):
        for name, default in reversed(fields.items()):
            flag = f"--{dataset}-{_SPELLING.get(name, name)}".replace("_", "-")
            kind = float if isinstance(default, float) else int
            command = click.option(flag, f"{dataset}_{name}", type=kind, help=f"[default: {default}]")(command)
    for flag, seed_spelling, text in reversed(_ANY):
        command = click.option(flag, seed_spelling, flag[2:].replace("-", "_"), type=int, help=text)(command)
    command = click.option("--seed", default=0, show_default=True, help="Seed of prompts and arrival times.")(command)
    command = click.option("--num-prompts", default=1000, show_default=True, type=click.IntRange(1), help="How many requests.")(command)
    command = click.option("--dataset-path", help="File of the dataset.")(command)
    return click.option("--dataset-name", default="random", show_default=True, help=", ".join(DATASETS))(command)


def take_dataset(values: dict[str, Any]) -> DatasetOptions:
    """Take what `dataset_options` added out of `values`.

    Raises ConfigError for lengths of another dataset than the one chosen: they would have no effect.
    """
    chosen = values.pop("dataset_name")
    fields = _FIELDS.get(chosen, {})
    general = {name: value for name in ("input_len", "output_len", "prefix_len") if (value := values.pop(name)) is not None}
    given: dict[str, Any] = {}
    for dataset, names in _FIELDS.items():
        for name in names:
            value = values.pop(f"{dataset}_{name}")
            if value is not None and dataset != chosen:
                raise ConfigError(f"--{dataset}-{name} has no effect on --dataset-name {chosen}".replace("_", "-"), param=name)
            if value is not None:
                given[name] = value
    for name in general:
        if fields and name not in fields:
            raise ConfigError(f"--{name.replace('_', '-')} has no effect on --dataset-name {chosen}", param=name)
    merged = {**fields, **general, **given}
    return DatasetOptions(
        name=chosen, path=values.pop("dataset_path"), count=values.pop("num_prompts"), seed=values.pop("seed"), **merged
    )


def not_built(*flags: str, takes_value: bool = True) -> Callable[[Command], Command]:
    """Hidden options of vLLM that say that they do not exist here, instead of being unknown."""

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
        if value is not None and value is not False:
            raise NotBuiltError(f"{param.opts[0]} is not built yet", param=param.name, fix="Leave it out.")

    def add(command: Command) -> Command:
        for flag in flags:
            command = click.option(
                flag, is_flag=not takes_value, hidden=True, expose_value=False, callback=refuse, default=None if takes_value else False
            )(command)
        return command

    return add


def pairs(items: Sequence[str], separator: str, param: str) -> list[tuple[str, str]]:
    """["a:1"] -> [("a", "1")]. Raises ConfigError for an item without the separator."""
    split = [item.partition(separator) for item in items]
    for name, found, _ in split:
        if not name or not found:
            raise ConfigError(f"--{param} expects NAME{separator}VALUE, found {name!r}", param=param)
    return [(name, value) for name, _, value in split]


def numbers(text: str, param: str) -> list[float]:
    """ "50,99" -> [50.0, 99.0], each in [0, 100]."""
    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or not all(0 <= value <= 100 for value in found):
        raise ConfigError(f"--{param} expects percentiles such as 50,99, found {text!r}", param=param)
    return found
