"""Which names a model may be served under."""

from __future__ import annotations

from collections.abc import Sequence

from headway.errors import ConfigError

_NAME = "served_model_name"


def check_served_names(names: Sequence[str]) -> None:
    """Raises ConfigError for a name that no request could give, and for one that is there twice."""
    for at, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"--served-model-name must be names that are not empty, got {name!r}", param=_NAME, fix="Leave it out, or give a name.")
        if name in names[:at]:
            raise ConfigError(f"--served-model-name has {name[:200]!r} twice", param=_NAME, fix="Give each name once.")
