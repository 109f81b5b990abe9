"""docs/launch.md names every reason and every variable of a launch over several nodes."""

from __future__ import annotations

from headway.distributed.disagreement import KINDS
from headway.distributed.launch_environment import DEFAULT_PORT, FOUR
from headway.distributed.node_address import ADDRESS_VARIABLE, INTERFACE_VARIABLES
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/launch.md").read_text(encoding="utf-8")
_WARNINGS = {"key_not_secret", "clock_differs", "shm_small", "cpus_differ", "memory_differs"}
_FILES_ONLY = {"node_not_given", "master_differs"}


def test_every_reason_is_told() -> None:
    reasons = {*KINDS, "launch_contradiction", "launch_incomplete", "launch_value", "ranks_do_not_divide", "master_unreachable"}
    assert not [reason for reason in reasons - _WARNINGS - _FILES_ONLY if f"`{reason}`" not in PAGE]


def test_variables_and_numbers() -> None:
    assert not [name for name in (*FOUR, *INTERFACE_VARIABLES, ADDRESS_VARIABLE) if f"`{name}`" not in PAGE]
    assert f"({DEFAULT_PORT})" in PAGE
