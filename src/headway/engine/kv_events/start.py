"""From settings and a cache to a publisher that tells what happens in it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from headway.engine.kv_events.publisher import EventPublisher
from headway.engine.kv_events.recorder import EventRecorder
from headway.engine.kv_events.settings import read_kv_events
from headway.kvcache.block_hash import root_hash
from headway.kvcache.manager import KVCacheManager

_log = logging.getLogger(__name__)


def publish_kv_events(config: Mapping[str, Any], manager: KVCacheManager, rank: int = 0) -> EventPublisher | None:
    """None when `config` (--kv-events-config) asks for nothing. Raises ConfigError when an address cannot be used."""
    settings = read_kv_events(config)
    if not settings.publishes:
        return None
    recorder = EventRecorder(root_hash(None), manager.block_size, settings.max_queue_size)
    publisher = EventPublisher(settings, recorder, rank)
    manager.observe(recorder)
    _log.info("KV events are published at %s%s", publisher.endpoint, f", replays at {settings.replay_endpoint}" if settings.replay_endpoint else "")
    if "tcp://*" in settings.endpoint:
        _log.warning("KV events hold the tokens of prompts, and %s is open to every host that reaches this one; give an address of a private network", settings.endpoint)
    return publisher
