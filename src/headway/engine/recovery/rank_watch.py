"""A rank that fails while nobody computes is noticed, too; and what is left of a group is ended without ever failing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from headway.errors import RankError

if TYPE_CHECKING:
    from headway.engine.distributed.rank_group import RankGroup

_log = logging.getLogger(__name__)


def watch(ranks: RankGroup | None, tell: Callable[[Callable[[], None]], None], in_use: Callable[[], RankGroup | None]) -> None:
    """When `ranks` fail, `tell` the engine's thread a command that raises their RankError there, if it still computes with them by then."""
    if ranks is None:
        return

    def look() -> None:
        if in_use() is ranks and ranks.failure is not None:
            raise ranks.failure

    ranks.watch(lambda: tell(look))
    if ranks.failure is not None:  # before anybody watched
        tell(look)


def close(ranks: RankGroup | None) -> None:
    if ranks is None:
        return
    try:
        ranks.close()
    except Exception:  # the processes see that they are alone; the engine goes on
        _log.exception("the ranks could not be ended")


def bare(error: RankError) -> RankError:
    """The same failure without the frames that it came through: they hold the model that is to be freed."""
    return RankError(error.rank, error.host, error.why)
