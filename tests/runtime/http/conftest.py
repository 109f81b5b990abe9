"""A worker with one model, and the model itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.arithmetic_model import ArithmeticModel
from tests.runtime.live_worker import LiveWorker, live_worker


@pytest.fixture(scope="module")
def model() -> ArithmeticModel:
    return ArithmeticModel()


@pytest.fixture(scope="module")
def worker(model: ArithmeticModel) -> Iterator[LiveWorker]:
    with live_worker({"arithmetic": model}) as running:
        yield running
