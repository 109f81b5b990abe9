from __future__ import annotations

import pytest

from headway.host.openmp import SPIN_COUNT, bound_spinning


def test_spinning_is_bounded_by_default() -> None:
    environment = {"PATH": "/bin"}
    bound_spinning(environment)
    assert environment == {"PATH": "/bin", "GOMP_SPINCOUNT": str(SPIN_COUNT)}


@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"])
def test_what_the_user_set_stays(name: str) -> None:
    environment = {name: "x"}
    bound_spinning(environment)
    assert environment == {name: "x"}
