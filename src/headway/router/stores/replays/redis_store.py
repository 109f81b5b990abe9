"""RedisReplays: records of requests in Redis, seen by all routers alike."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import orjson
import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from headway.errors import NotFoundError
from headway.router.config.document.services import ReplayRedis
from headway.router.metrics.registry import RouterMetrics
from headway.router.protocols.responses.store import StoreUnavailableError
from headway.router.stores.redis_address import connection_of, options_of
from headway.router.stores.redis_rest import Rest
from headway.router.stores.replays.redis_scripts import KEEP, NEWEST, OUTCOME
from headway.router.stores.replays.store import COLUMNS, Filters, OutcomeConflictError, columns_of
from headway.router.stores.replays.writing_together import write_together

T = TypeVar("T")
_QUEUE: Final = 1024  # records that wait to be written; more are dropped and counted
_WRITTEN_TOGETHER: Final = 32
_READ_TOGETHER: Final = 64
_KEY_SECONDS: Final = 30 * 86_400  # how long an idempotency key is known where records live for ever
_NAMES: Final = (*COLUMNS, "status", "tokens", "latency")


class RedisReplays:
    """Records wait in this process while Redis is away, as many as the queue holds; reading raises StoreUnavailableError then. Any thread may call."""

    def __init__(self, settings: ReplayRedis, max_records: int, ttl: float, metrics: RouterMetrics | None = None) -> None:
        connection = connection_of(settings)
        self._client: Any = redis.Redis(**options_of(connection), retry=Retry(NoBackoff(), 0))
        self._timeout = connection.timeout
        self._rest = Rest("router_replay", metrics)
        self._prefix = settings.key_prefix + "v1:"
        self._keep, self._newest, self._outcome = (self._client.register_script(text) for text in (KEEP, NEWEST, OUTCOME))
        self._queue: queue.Queue[Mapping[str, Any] | None] = queue.Queue(_QUEUE)
        self._closing = threading.Event()
        self.dropped = 0
        self.limit(max_records, ttl)
        self._writer = threading.Thread(target=self._write_queue, name="replays", daemon=True)
        self._writer.start()

    def limit(self, max_records: int, ttl: float) -> None:
        """From now on."""
        self._max, self._ttl = max_records, int(ttl)

    def add(self, record: Mapping[str, Any]) -> None:
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def find(self, filters: Filters, limit: int, offset: int) -> tuple[Sequence[dict[str, Any]], int]:
        """The newest first, and how many match."""
        ids = [found for found, _ in self._matching(filters)]
        return self._records(ids[offset : offset + limit]), len(ids)

    def get(self, replay: str) -> dict[str, Any]:
        """With its outcomes. Raises NotFoundError."""
        self._wait()

        def read() -> tuple[Any, Sequence[Any]]:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.hget(self._name("r", replay), "record")
                pipe.lrange(self._name("o", replay), 0, -1)
                record, outcomes = pipe.execute()
            return record, outcomes

        record, outcomes = self._asked(read)
        if record is None:
            raise _missing(replay)
        return {**orjson.loads(record), "outcomes": [orjson.loads(each) for each in outcomes]}

    def aggregate(self, filters: Filters) -> dict[str, Any]:
        """Counts by decision, model and cache status, tokens and the mean latency in milliseconds."""
        found = [columns for _, columns in self._matching(filters)]
        by = {
            name: dict(Counter(columns[column] for columns in found).most_common(100))
            for name, column in (("decisions", "decision"), ("models", "model"), ("cache_statuses", "cache"), ("recipes", "recipe"))
        }
        latency = sum(columns["latency"] for columns in found) / len(found) if found else None
        errors, tokens = sum(columns["status"] >= 400 for columns in found), sum(columns["tokens"] for columns in found)
        return {"total": len(found), "errors": errors, "total_tokens": tokens, "mean_latency_ms": latency, **by}

    def trajectory(self, session: str, limit: int) -> Sequence[dict[str, Any]]:
        """The records of one session, the oldest first."""
        self._wait()
        ids = self._asked(lambda: self._client.zrange(self._name("s", _digest(session)), 0, limit - 1))
        return self._records([each.decode() for each in ids])

    def add_outcome(self, replay: str, outcome: Mapping[str, Any], key: str | None = None, early: bool = False) -> tuple[dict[str, Any], bool]:
        """As ReplayStore does. Raises NotFoundError, OutcomeConflictError."""
        self._wait()
        made = {"id": f"out_{uuid.uuid4().hex[:24]}", "replay_id": replay, "created_at": int(time.time()), **outcome}
        arguments: list[str | bytes | int] = [self._prefix, replay, _digest(key) if key is not None else "", orjson.dumps(made), int(early), self._ttl or _KEY_SECONDS]
        became, text = self._asked(lambda: self._outcome([], arguments))
        if became == b"missing":
            raise _missing(replay)
        kept: dict[str, Any] = orjson.loads(text)
        if became == b"known" and ({name: kept.get(name) for name in outcome} != dict(outcome) or kept["replay_id"] != replay):
            raise OutcomeConflictError("this Idempotency-Key was used for another outcome", fix="Use a new key.")
        return kept, became == b"new"

    def close(self) -> None:
        """After one more try to write what waits."""
        self._closing.set()
        self._queue.put(None)
        self._writer.join(timeout=10)
        self._client.close()

    def _matching(self, filters: Filters) -> Iterator[tuple[str, dict[str, Any]]]:
        """Ids with their columns, the newest first."""
        self._wait()
        ids = [each.decode() for each in self._asked(lambda: self._newest([self._prefix + "index"], [self._ttl]))]
        fields = ("columns", "record") if filters.search else ("columns",)
        for start in range(0, len(ids), _READ_TOGETHER):
            part = ids[start : start + _READ_TOGETHER]
            for replay, (columns, *record) in zip(part, self._read(part, fields), strict=True):
                if columns is None:
                    continue
                named = dict(zip(_NAMES, orjson.loads(columns), strict=True))
                if filters.match(named, record[0] if record else b""):
                    yield replay, named

    def _records(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for start in range(0, len(ids), _READ_TOGETHER):
            found += [orjson.loads(record) for (record,) in self._read(ids[start : start + _READ_TOGETHER], ("record",)) if record is not None]
        return found

    def _read(self, ids: Sequence[str], fields: Sequence[str]) -> list[Any]:
        def read() -> list[Any]:
            with self._client.pipeline(transaction=False) as pipe:
                for each in ids:
                    pipe.hmget(self._name("r", each), fields)
                return list(pipe.execute())

        return self._asked(read)

    def _asked(self, ask: Callable[[], T]) -> T:
        unavailable = StoreUnavailableError("the store of replays does not answer", fix="Try again later.")
        if not self._rest.over:
            self._rest.refused()
            raise unavailable
        try:
            answer = ask()
        except (RedisError, OSError) as error:
            self._rest.failed(error)
            raise unavailable from None
        self._rest.worked()
        return answer

    def _wait(self) -> None:
        """Until what was added before is written, as long as Redis answers."""
        with self._queue.all_tasks_done:
            self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks or self._rest.trouble is not None, self._timeout)

    def _write_queue(self) -> None:
        write_together(self._queue, _WRITTEN_TOGETHER, self._write)

    def _write(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Tries until Redis has them: twice is the same as once."""
        if not records:
            return
        rows = [value for record in records for value in _row(record)]
        while True:
            try:
                self._asked(lambda: self._keep([self._prefix + "index"], [self._prefix, self._max, self._ttl, *rows]))
                return
            except StoreUnavailableError:
                if self._closing.wait(0.1):
                    self.dropped += len(records)
                    return

    def _name(self, kind: str, name: str) -> str:
        return f"{self._prefix}{kind}:{name}"


def _row(record: Mapping[str, Any]) -> tuple[Any, ...]:
    columns = columns_of(record)
    session = columns[COLUMNS.index("session")]
    return record["id"], _digest(session) if session else "", orjson.dumps(columns), orjson.dumps(record)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _missing(replay: str) -> NotFoundError:
    return NotFoundError(f'there is no replay "{replay}"', fix="Records end with their time or when there are too many.")
