"""EngineArgs and AsyncEngineArgs with the names of `vllm.engine.arg_utils`: keyword arguments that are checked when given."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any, Self

from headway.compose.stack import DEFAULT_MODEL
from headway.engine.arguments import engine_config
from headway.engine.config import EngineConfig
from headway.engine.flags import ENGINE_FLAGS
from headway.flags.flag import Flag


class EngineArgs:
    """`EngineArgs(model=..., max_model_len=4096)`: the keywords are those of `LLM`.

    Every field of EngineConfig can be read as an attribute. Raises ConfigError and NotBuiltError as `LLM` does.
    """

    def __init__(self, model: str = DEFAULT_MODEL, **arguments: Any):
        self._config = engine_config(model, arguments)

    def create_engine_config(self) -> EngineConfig:
        return self._config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._config, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._config})"

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """`--model` and every engine flag; flags that are not given do not appear in the namespace."""
        parser.add_argument("--model", default=argparse.SUPPRESS, help="The model.")
        for flag in ENGINE_FLAGS:
            _add(parser, flag)
        return parser

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> Self:
        """The engine's part of a namespace; what other flags put there is left alone."""
        known = {"model", *(f.dest for f in ENGINE_FLAGS), *(f.name for f in dataclasses.fields(EngineConfig))}
        return cls(**{name: value for name, value in vars(args).items() if name in known})


class AsyncEngineArgs(EngineArgs):
    """The same for `AsyncLLM`."""


def _add(parser: argparse.ArgumentParser, flag: Flag) -> None:
    spellings = [s if s.startswith("-") else f"--{s}" for s in (flag.name, *flag.aliases)]
    options: dict[str, Any] = {"dest": flag.dest, "default": argparse.SUPPRESS, "help": flag.help.replace("%", "%%")}
    if flag.kind == "bool":
        parser.add_argument(*spellings, action=argparse.BooleanOptionalAction, **options)
    elif flag.kind == "words":
        parser.add_argument(*spellings, nargs="+", **options)
    elif flag.kind == "texts":
        parser.add_argument(*spellings, action="append", **options)
    else:
        parser.add_argument(*spellings, type=flag.read, **options)
