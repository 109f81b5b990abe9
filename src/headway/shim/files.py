"""The files of the alias: a package `vllm`, its metadata, a program. All of them are text that depends on the place only."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from headway.shim.version import ALIAS_VERSION

INSTALLER = "headway"  # what pip shows as the program that installed it; the mark by which the alias is known
METADATA_FOLDER = f"vllm-{ALIAS_VERSION}.dist-info"
RECORD = f"{METADATA_FOLDER}/RECORD"
_LONGEST_SHEBANG = 127  # bytes that Linux reads of the first line

_PACKAGE = '''"""Headway's alias of vLLM, written by `headway shim install`. It is not vLLM; `headway shim remove` deletes it."""

import sys

try:
    from headway.shim.modules import take_over
except ModuleNotFoundError as error:
    raise ImportError(
        "This `vllm` is Headway's alias, and Headway cannot be imported here. Install Headway, or delete the alias: "
        "pip uninstall vllm"
    ) from error

take_over(sys.modules[__name__])
'''

_METADATA = f"""Metadata-Version: 2.1
Name: vllm
Version: {ALIAS_VERSION}
Summary: Headway's alias of vLLM's names and of the program vllm. Not vLLM. Deleted by `headway shim remove`.
License: Apache-2.0
"""

_WHEEL = """Wheel-Version: 1.0
Generator: headway
Root-Is-Purelib: true
Tag: py3-none-any
"""

_PROGRAM = """import sys

from headway.cli.vllm import main

sys.exit(main())
"""


def package_files() -> dict[str, str]:
    """Path below the folder of packages -> content, without the RECORD."""
    return {
        "vllm/__init__.py": _PACKAGE,
        f"{METADATA_FOLDER}/METADATA": _METADATA,
        f"{METADATA_FOLDER}/WHEEL": _WHEEL,
        f"{METADATA_FOLDER}/INSTALLER": f"{INSTALLER}\n",
    }


def program(python: str) -> str:
    """The script `vllm` for that interpreter. Paths that a first line cannot hold go through /bin/sh, as pip does it."""
    if " " not in python and len(python) + 3 <= _LONGEST_SHEBANG:
        return f"#!{python}\n{_PROGRAM}"
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n{_PROGRAM}"


def record(files: Mapping[str, str]) -> str:
    """The RECORD of installed packages (packaging.python.org): path, hash and size; its own line is last."""
    return "".join(f"{path},{fingerprint(text.encode())},{len(text.encode())}\n" for path, text in files.items()) + f"{RECORD},,\n"


def fingerprint(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
