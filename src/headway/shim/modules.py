"""Modules of the alias, made when they are imported. What is not in the table says that this `vllm` is Headway's.

All of them are packages without files: for a package Python lets the finder's own message through when a name is
missing in `from vllm.x import name`, for a plain module it does not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from headway.shim.names import MODULES, PROGRAMS

ORIGIN = "Headway's alias of vLLM"
_MAIN = ".__main__"


def take_over(module: ModuleType) -> None:
    """Give the imported package `vllm` its names, and let the modules below it be found. May be called again."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
    module.__path__ = []  # nothing below it is a file
    _give_names(module)


class AliasFinder(MetaPathFinder):
    """Finds `vllm.*` and nothing else. Raises ModuleNotFoundError for modules that the alias does not have."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("vllm."):
            return None
        if fullname in MODULES or fullname.removesuffix(_MAIN) in PROGRAMS:
            is_package = fullname in MODULES
            return spec_from_loader(fullname, _AliasLoader(), origin=ORIGIN, is_package=is_package)
        # Without the name in the error, `from vllm import x` shows this message instead of Python's own.
        raise ModuleNotFoundError(missing(*fullname.rsplit(".", 1)))


class _AliasLoader(InspectLoader):
    def is_package(self, fullname: str) -> bool:
        return fullname in MODULES

    def get_source(self, fullname: str) -> str:
        """The source of `python -m` programs, "" for modules of names."""
        if not fullname.endswith(_MAIN):
            return ""
        home, function = PROGRAMS[fullname.removesuffix(_MAIN)].split(":")
        return f"from {home} import {function}\n{function}()\n"

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in MODULES:
            _give_names(module)
        else:
            super().exec_module(module)


def missing(module: str, name: str) -> str:
    have = sorted(n for n in MODULES.get(module, ()) if not n.startswith("__"))
    below = sorted(m.removeprefix(module + ".") for m in MODULES if m.rpartition(".")[0] == module)
    return (
        f"{module} has no {name}: this `vllm` is Headway's alias, with a part of vLLM's names. {module} has: "
        f"{', '.join([*have, *below]) or 'no names'}. `headway shim remove` takes the alias away."
    )


def _give_names(module: ModuleType) -> None:
    """Names are looked up when they are asked for, so that `import vllm` does not pay for torch."""
    table = MODULES[module.__name__]

    def get(name: str) -> Any:
        if name not in table:
            raise AttributeError(missing(module.__name__, name))
        home, _, attribute = table[name].partition(":")
        return getattr(import_module(home), attribute)

    module.__getattr__ = get  # type: ignore[method-assign]
    module.__dir__ = lambda: sorted(table)  # type: ignore[method-assign]
    module.__all__ = sorted(table)  # type: ignore[attr-defined]
