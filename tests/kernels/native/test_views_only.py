"""While a pass is recorded torch may only make views, and brings nothing along for watching that."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from headway.kernels.native.views_only import NotRecordable, ViewsOnly

SCRIPT = """
import sys, torch
from headway.kernels.native.views_only import ViewsOnly
x = torch.ones(4)
with ViewsOnly():
    x.view(2, 2)
assert "torch._dynamo" not in sys.modules
"""


def test_views_pass_and_computing_does_not() -> None:
    x = torch.ones(4)
    with ViewsOnly():
        x.view(2, 2)
        with pytest.raises(NotRecordable, match="add"):
            x + 1


def test_the_compiler_of_torch_is_not_imported() -> None:
    """It would cost every server 63 MB and a second or two of its start."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
