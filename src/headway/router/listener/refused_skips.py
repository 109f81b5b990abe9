"""Telling the operator of callers who ask to skip processing and may not."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)
_MOST_PEERS = 256


class RefusedSkips:
    """Logs each peer once, and no more than so many peers: who asks sees nothing of it, and cannot fill the log."""

    def __init__(self) -> None:
        self._peers: set[str] = set()

    def note(self, peer: str) -> None:
        if peer in self._peers or len(self._peers) > _MOST_PEERS:
            return
        self._peers.add(peer)
        if len(self._peers) > _MOST_PEERS:
            _log.warning("x-vsr-skip-processing was refused to more than %d peers; further ones are not told", _MOST_PEERS)
            return
        _log.warning(
            "x-vsr-skip-processing from %s is ignored: it needs global.router.skip_processing.enabled and a peer among the listener's"
            " identity.trusted_peers; told once for each peer", peer,
        )  # fmt: skip
