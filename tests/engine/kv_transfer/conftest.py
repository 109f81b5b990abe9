"""One producer and one consumer for all tests of this package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.kv_transfer.engines import Started, run
from tests.engine.tiny_folder import complete_tiny_model


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("disaggregated")).folder


@pytest.fixture(scope="package")
def pair(folder: Path) -> Iterator[tuple[Started, Started]]:
    producer, consumer = Started(folder, "kv_producer"), Started(folder, "kv_consumer")
    yield producer, consumer
    producer.close()
    consumer.close()


@pytest.fixture
def producer(pair: tuple[Started, Started]) -> Started:
    return pair[0]


@pytest.fixture
def consumer(pair: tuple[Started, Started]) -> Started:
    """Remembers nothing from the test before."""
    assert run(lambda: pair[1].engine.reset_prefix_cache())
    return pair[1]
