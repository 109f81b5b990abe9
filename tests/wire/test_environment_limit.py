from __future__ import annotations

import pytest

from headway.errors import ConfigError
from headway.wire.environment_limit import environment_limit


@pytest.mark.parametrize(("environment", "limit"), [({}, 4), ({"X": ""}, 4), ({"X": " 7 "}, 7)])
def test_a_number_or_the_default(environment: dict[str, str], limit: int) -> None:
    assert environment_limit("X", 4, environment) == limit


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "١"])
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="X must be a whole number") as caught:
        environment_limit("X", 4, {"X": text})
    assert caught.value.param == "X"
