"""VectorStores: files, their pieces and the pieces' vectors; SQLite for what is kept, indexes in process for searching."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from headway.errors import NotFoundError, RequestError
from headway.router.stores.database import opened
from headway.router.stores.nearest import Nearest, Vector
from headway.router.stores.vectors.records import Attached, Passage, Store, StoredFile

_SCHEMA = """
CREATE TABLE IF NOT EXISTS stores (id TEXT PRIMARY KEY, name TEXT NOT NULL, created INTEGER NOT NULL, metadata BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER NOT NULL, created INTEGER NOT NULL, purpose TEXT NOT NULL,
    content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS attached (store TEXT NOT NULL REFERENCES stores ON DELETE CASCADE, file TEXT NOT NULL REFERENCES files ON DELETE CASCADE,
    status TEXT NOT NULL, created INTEGER NOT NULL, error TEXT, attributes BLOB NOT NULL, PRIMARY KEY (store, file));
CREATE TABLE IF NOT EXISTS chunks (id INTEGER PRIMARY KEY, store TEXT NOT NULL, file TEXT NOT NULL, place INTEGER NOT NULL, text TEXT NOT NULL,
    representation TEXT NOT NULL, vector BLOB NOT NULL, FOREIGN KEY (store, file) REFERENCES attached ON DELETE CASCADE);
CREATE INDEX IF NOT EXISTS chunks_of ON chunks (store, representation);
"""


class VectorStores:
    """Any thread may call; calls take turns. Vectors are compared within one store and one representation only."""

    def __init__(self, path: Path | None) -> None:
        """`path` None: nothing outlives the process."""
        self._database = opened(path, _SCHEMA) if path else sqlite3.connect(":memory:", check_same_thread=False)
        if path is None:
            self._database.execute("PRAGMA foreign_keys=ON")
            self._database.executescript(_SCHEMA)
        self._lock = threading.RLock()
        self._indexes: dict[tuple[str, str], Nearest] = {}
        self._versions: dict[str, int] = {}
        with self._lock, self._database:  # what a process that ended was reading in
            self._database.execute("UPDATE attached SET status = 'failed', error = 'the router ended while it read the file' WHERE status = 'in_progress'")

    def create(self, name: str, metadata: Mapping[str, Any]) -> Store:
        made = Store(f"vs_{uuid.uuid4().hex[:24]}", name, int(time.time()), metadata)
        self._run("INSERT INTO stores VALUES (?, ?, ?, ?)", made.id, made.name, made.created, orjson.dumps(dict(metadata)))
        return made

    def find(self, name_or_id: str) -> Store:
        """Raises NotFoundError."""
        rows = self._rows("SELECT id FROM stores WHERE id = ? UNION ALL SELECT id FROM stores WHERE name = ? LIMIT 1", name_or_id, name_or_id)
        if not rows:
            raise NotFoundError(f'there is no vector store "{name_or_id}"', fix="POST /api/v1/storage/vector-stores makes one.")
        return self._store(rows[0][0])

    def listed(self, limit: int, offset: int) -> tuple[Sequence[Store], int]:
        """The newest first, and how many there are."""
        rows = self._rows("SELECT id FROM stores ORDER BY created DESC, rowid DESC LIMIT ? OFFSET ?", limit, offset)
        return [self._store(row[0]) for row in rows], self._rows("SELECT count(*) FROM stores")[0][0]

    def update(self, store: str, name: str | None, metadata: Mapping[str, Any] | None) -> Store:
        found = self.find(store)
        kept = found.metadata if metadata is None else metadata
        self._run("UPDATE stores SET name = ?, metadata = ? WHERE id = ?", name or found.name, orjson.dumps(dict(kept)), found.id)
        return self.find(found.id)

    def delete(self, store: str) -> None:
        self._run("DELETE FROM stores WHERE id = ?", self.find(store).id)
        self._changed(store)

    def add_file(self, name: str, content: bytes, purpose: str = "assistants") -> StoredFile:
        made = StoredFile(f"file_{uuid.uuid4().hex[:24]}", name, len(content), int(time.time()), purpose)
        self._run("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", made.id, made.name, made.size, made.created, purpose, content)
        return made

    def file(self, file: str) -> StoredFile:
        """Raises NotFoundError."""
        rows = self._rows("SELECT id, name, size, created, purpose FROM files WHERE id = ?", file)
        if not rows:
            raise NotFoundError(f'there is no file "{file}"', fix="POST /api/v1/storage/files uploads one.")
        return StoredFile(*rows[0])

    def files(self, limit: int, offset: int) -> tuple[Sequence[StoredFile], int]:
        rows = self._rows("SELECT id, name, size, created, purpose FROM files ORDER BY created DESC, rowid DESC LIMIT ? OFFSET ?", limit, offset)
        return [StoredFile(*row) for row in rows], self._rows("SELECT count(*) FROM files")[0][0]

    def content(self, file: str) -> bytes:
        self.file(file)
        return bytes(self._rows("SELECT content FROM files WHERE id = ?", file)[0][0])

    def delete_file(self, file: str) -> None:
        self.file(file)
        stores = [row[0] for row in self._rows("SELECT store FROM attached WHERE file = ?", file)]
        self._run("DELETE FROM files WHERE id = ?", file)
        for store in stores:
            self._changed(store)

    def attach(self, store: str, file: str, attributes: Mapping[str, Any]) -> Attached:
        """The file is `in_progress` until `finish` or `fail`. Raises NotFoundError, RequestError when it is attached already."""
        found, kept = self.find(store), self.file(file)
        try:
            self._run("INSERT INTO attached VALUES (?, ?, 'in_progress', ?, NULL, ?)", found.id, kept.id, int(time.time()), orjson.dumps(dict(attributes)))
        except sqlite3.IntegrityError as error:
            raise RequestError(f'file "{kept.id}" is in store "{found.id}" already', param="file_id") from error
        return self.attached(found.id, kept.id)

    def attached(self, store: str, file: str) -> Attached:
        """Raises NotFoundError."""
        found = [each for each in self.files_of(store) if each.file == file]
        if not found:
            raise NotFoundError(f'store "{store}" has no file "{file}"')
        return found[0]

    def files_of(self, store: str) -> Sequence[Attached]:
        rows = self._rows(
            "SELECT a.store, a.file, f.name, a.status, a.created, a.error, (SELECT count(*) FROM chunks c WHERE c.store = a.store AND c.file = a.file),"
            " a.attributes FROM attached a JOIN files f ON f.id = a.file WHERE a.store = ? ORDER BY a.created DESC, a.rowid DESC",
            self.find(store).id,
        )
        return [Attached(row[0], row[1], row[2], row[3], row[4], row[5], row[6], orjson.loads(row[7])) for row in rows]

    def detach(self, store: str, file: str) -> None:
        found = self.attached(self.find(store).id, file)
        self._run("DELETE FROM attached WHERE store = ? AND file = ?", found.store, file)
        self._changed(found.store)

    def finish(self, store: str, file: str, texts: Sequence[str], representation: str, vectors: Sequence[Vector]) -> None:
        rows = [(store, file, at, text, representation, _packed(vector)) for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))]
        with self._lock, self._database:
            self._database.executemany("INSERT INTO chunks (store, file, place, text, representation, vector) VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._database.execute("UPDATE attached SET status = 'completed', error = NULL WHERE store = ? AND file = ?", (store, file))
            self._changed(store)

    def fail(self, store: str, file: str, error: str) -> None:
        self._run("UPDATE attached SET status = 'failed', error = ? WHERE store = ? AND file = ?", error, store, file)

    def search(
        self, store: str, representation: str, vector: Vector, limit: int, least: float = -1.0, files: Sequence[str] = ()
    ) -> Sequence[Passage]:
        """The most similar pieces first; of `files` only, if any are named."""
        found = self.find(store)
        with self._lock:
            index = self._index(found.id, representation)
            near = index.search(vector, limit if not files else len(index))
            passages: list[Passage] = []
            for chunk, score in near:
                if score < least or len(passages) == limit:
                    break
                rows = self._rows(
                    "SELECT c.file, f.name, c.text, a.attributes FROM chunks c JOIN files f ON f.id = c.file"
                    " JOIN attached a ON a.store = c.store AND a.file = c.file WHERE c.id = ?",
                    chunk,
                )
                if rows and (not files or rows[0][0] in files):
                    passages.append(Passage(chunk, rows[0][0], rows[0][1], rows[0][2], score, orjson.loads(rows[0][3])))
            return passages

    def version(self, store: str) -> int:
        """Another number after each change of what can be found."""
        return self._versions.get(store, 0)

    def counts(self) -> Mapping[str, int]:
        """Pieces by representation."""
        return dict(self._rows("SELECT representation, count(*) FROM chunks GROUP BY representation"))

    def chunk_count(self, store: str) -> int:
        return int(self._rows("SELECT count(*) FROM chunks WHERE store = ?", store)[0][0])

    def foreign(self, representation: str, limit: int) -> Sequence[tuple[int, str]]:
        """Pieces whose vectors another model made: number and text."""
        return [(row[0], row[1]) for row in self._rows("SELECT id, text FROM chunks WHERE representation != ? LIMIT ?", representation, limit)]

    def replace_vectors(self, representation: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        with self._lock, self._database:
            rows = [(representation, _packed(vector), chunk) for chunk, vector in vectors]
            self._database.executemany("UPDATE chunks SET representation = ?, vector = ? WHERE id = ?", rows)
            for store in {store for store, _ in self._indexes}:
                self._changed(store)

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _index(self, store: str, representation: str) -> Nearest:
        key = store, representation
        if key not in self._indexes:
            made = self._indexes[key] = Nearest()
            for chunk, vector in self._rows("SELECT id, vector FROM chunks WHERE store = ? AND representation = ?", store, representation):
                made.add(chunk, np.frombuffer(vector, dtype="<f4").astype(np.float32))
        return self._indexes[key]

    def _store(self, store: str) -> Store:
        found = self._rows("SELECT id, name, created, metadata FROM stores WHERE id = ?", store)[0]
        files = dict(self._rows("SELECT status, count(*) FROM attached WHERE store = ? GROUP BY status", store))
        return Store(found[0], found[1], found[2], orjson.loads(found[3]), files, self.chunk_count(store))

    def _changed(self, store: str) -> None:
        with self._lock:
            self._versions[store] = self._versions.get(store, 0) + 1
            for key in [key for key in self._indexes if key[0] == store]:
                del self._indexes[key]

    def _run(self, statement: str, *values: Any) -> None:
        with self._lock, self._database:
            self._database.execute(statement, values)

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()


def _packed(vector: Vector) -> bytes:
    return vector.astype("<f4").tobytes()
