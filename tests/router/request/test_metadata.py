"""The bounds of a request's metadata."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import RequestError
from headway.router.request.metadata import check_metadata


@pytest.mark.parametrize("found", [None, {}, {"a": ""}, {str(at): "x" for at in range(32)}, {"k" * 128: "é" * 512}])
def test_in_bounds(found: Any) -> None:
    check_metadata(found)


@pytest.mark.parametrize(
    "found", [[], "x", 7, {"a": 7}, {"a": None}, {"": "x"}, {str(at): "x" for at in range(33)}, {"é" * 65: "x"}, {"k": "x" * 1025}, {"k": "é" * 513}]
)
def test_out_of_bounds(found: Any) -> None:
    with pytest.raises(RequestError, match="at most 32 strings") as caught:
        check_metadata(found)
    assert (caught.value.reason, caught.value.param) == ("invalid_request", "metadata")
