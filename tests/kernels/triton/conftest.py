"""The suite of Triton's kernels: in its interpreter on the CPU, and, marked `gpu`, on the device where the interpreter is off."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headway.kernels.interface import Kernels
from headway.kernels.triton.backend import triton_kernels
from headway.kernels.triton.place import triton_place
from tests.kernels.triton.marking import mark_tests_of_a_gpu


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tests_of_a_gpu(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def device() -> torch.device:
    return triton_place()


@pytest.fixture(scope="session")
def kernels(device: torch.device) -> Kernels:
    return triton_kernels(device)
