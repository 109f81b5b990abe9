"""A node other than the first: it meets the others, starts its ranks, and starts them again when their group has ended.

It answers no HTTP. It ends with exit code 0 when it is told to (SIGTERM, SIGINT), and with 1 when the nodes cannot start
together or node 0 does not come back in the time that nodes wait for each other (`node_meeting`).
"""

from __future__ import annotations

import logging
import signal
import threading
from typing import Final

from headway.engine.config import EngineConfig
from headway.engine.configured_card import configured_card
from headway.engine.distributed.local_process import LocalProcess
from headway.engine.distributed.node_meeting import meet_nodes
from headway.engine.distributed.refused_settings import check_ranks
from headway.errors import HeadwayError
from headway.host.cpu_budget import cpu_budget

_log = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.2


def run_headless(config: EngineConfig) -> int:
    """For the main thread: until a signal comes. Returns the exit code; raises ConfigError, ArtifactError for what is wrong here."""
    check_ranks(config)
    model = configured_card(config).path
    stop, meets = threading.Event(), threading.Event()

    def told(*_: object) -> None:
        stop.set()
        if meets.is_set():
            raise SystemExit(0)  # there is nothing to end yet, and the others may be long in coming

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    while not stop.is_set():
        meets.set()
        try:
            meeting = meet_nodes(config, model)
        except HeadwayError as error:
            _log.error("%s", error)
            return 1
        finally:
            meets.clear()
        for sentence in meeting.warnings:
            _log.warning("%s", sentence)
        topology = meeting.topology
        threads = max(1, cpu_budget().threads // topology.ranks_per_node)
        ranks = [
            LocalProcess(rank, meeting.addresses[0], topology.master_port, meeting.key.secret, threads, topology.timeout_seconds) for rank in topology.local_ranks
        ]
        _log.info("Node %d: ranks %d to %d of %d", topology.node_rank, topology.local_ranks.start, topology.local_ranks.stop - 1, topology.ranks)
        _until_over(ranks, stop)
    return 0


def _until_over(ranks: list[LocalProcess], stop: threading.Event) -> None:
    """The first rank that ends, or the signal, ends all of this node: what is left of a group cannot compute."""
    try:
        while not stop.wait(_LOOK_SECONDS):
            ended = [(rank.rank, how) for rank in ranks if (how := rank.how_it_ended()) is not None]
            if ended:
                _log.warning("%s", "; ".join(f"rank {rank}: {how}" for rank, how in ended))
                return
    finally:
        for rank in ranks:
            rank.end(at_once=not stop.is_set())
