from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.server.api import Api


@pytest.fixture
def make_api() -> Iterator[Callable[..., Api]]:
    made: list[Api] = []

    def make(*args: Any, **kwargs: Any) -> Api:
        made.append(Api(*args, **kwargs))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(make_api: Callable[..., Api]) -> Api:
    return make_api()
