"""Models on Triton's kernels: as `tests/kernels/triton`, in the interpreter or on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig

from headway.kernels.interface import Kernels
from headway.kernels.triton.backend import triton_kernels
from headway.kernels.triton.place import triton_place
from tests.kernels.triton.marking import mark_tests_of_a_gpu
from tests.models.tiny_models import TinyModel, make_tiny_model
from tests.models.tiny_sizes import SIZES


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_tests_of_a_gpu(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    return triton_kernels(triton_place())


@pytest.fixture
def cuda_kernels() -> Kernels:
    """For tests that only a GPU can run."""
    return triton_kernels(torch.device("cuda", torch.cuda.current_device()))


@pytest.fixture(scope="session")
def one_layer(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """In the interpreter a launch takes some milliseconds."""
    return make_tiny_model("one_layer", LlamaConfig(**SIZES, num_hidden_layers=1), tmp_path_factory.mktemp("tiny"))
