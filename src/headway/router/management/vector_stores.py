"""Vector stores and their files: making, filling, searching, deleting."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import RequestError
from headway.router.config.document.stores import VectorStore
from headway.router.deployments.calls import Unanswered
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import calls, switched_off, unanswered
from headway.router.management.multipart import uploaded
from headway.router.management.route import Route
from headway.router.plugins.models import Embedded, embedded
from headway.router.plugins.store_embedding import store_embedding
from headway.router.stores.vectors.chunking import Chunking
from headway.router.stores.vectors.ingestion import Embed, IngestionError
from headway.router.stores.vectors.opened import vector_settings
from headway.router.stores.vectors.store import VectorStores

_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_MOST_RESULTS = 50
_LONGEST_QUERY = 64 << 10


async def create(call: Call) -> Answer:
    body = call.json() if call.raw.strip() else {}
    stores = _stores(call)
    made = await asyncio.to_thread(stores.create, _name(body.get("name", "store")), _object(body, "metadata"))
    for file in _strings(body.get("file_ids", []), "file_ids"):
        await _attach(call, made.id, file, {"file_id": file})
    return Answer((await asyncio.to_thread(stores.find, made.id)).described(), 201)


async def stores(call: Call) -> Answer:
    limit, offset = call.number("limit", 20, 100), call.number("offset", 0, 10**9)
    found, total = await asyncio.to_thread(_stores(call).listed, limit, offset)
    return Answer({"object": "list", "total": total, "data": [each.described() for each in found]})


async def store(call: Call) -> Answer:
    return Answer((await asyncio.to_thread(_stores(call).find, call.parameters["id"])).described())


async def update(call: Call) -> Answer:
    body = call.json()
    name = _name(body["name"]) if "name" in body else None
    metadata = _object(body, "metadata") if "metadata" in body else None
    return Answer((await asyncio.to_thread(_stores(call).update, call.parameters["id"], name, metadata)).described())


async def delete(call: Call) -> Answer:
    await asyncio.to_thread(_stores(call).delete, call.parameters["id"])
    return Answer({"id": call.parameters["id"], "object": "vector_store.deleted", "deleted": True})


async def search(call: Call) -> Answer:
    body = call.json()
    query, limit = body.get("query"), body.get("max_num_results", body.get("top_k", 10))
    if not isinstance(query, str) or not query.strip() or len(query) > _LONGEST_QUERY:
        raise ManagementError("INVALID_INPUT", "query must be a string that is not empty")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_RESULTS:
        raise ManagementError("INVALID_INPUT", f"max_num_results must be between 1 and {_MOST_RESULTS}")
    options = body.get("ranking_options") or {}
    least = options.get("score_threshold", -1.0) if isinstance(options, Mapping) else -1.0
    if not isinstance(least, int | float):
        raise ManagementError("INVALID_INPUT", "ranking_options.score_threshold must be a number")
    files = _strings(body.get("file_ids", []), "file_ids")
    held = _stores(call)
    found = await asyncio.to_thread(held.find, call.parameters["id"])
    made = await _vectors(call, [query])
    if isinstance(made, Unanswered):
        raise unanswered(made)
    passages = await asyncio.to_thread(held.search, found.id, made.representation, made.vectors[0], limit, float(least), files)
    data = [passage.described() for passage in passages]
    return Answer({"object": "vector_store.search_results.page", "search_query": query, "data": data, "has_more": False})


async def attach(call: Call) -> Answer:
    body = call.json()
    file = body.get("file_id")
    if not isinstance(file, str):
        raise ManagementError("INVALID_INPUT", "file_id must name an uploaded file")
    return Answer(await _attach(call, call.parameters["id"], file, body), 201)


async def attached(call: Call) -> Answer:
    found = await asyncio.to_thread(_stores(call).files_of, call.parameters["id"])
    return Answer({"object": "list", "data": [each.described() for each in found]})


async def attached_file(call: Call) -> Answer:
    held = _stores(call)
    found = await asyncio.to_thread(lambda: held.attached(held.find(call.parameters["id"]).id, call.parameters["file"]))
    return Answer(found.described())


async def detach(call: Call) -> Answer:
    await asyncio.to_thread(_stores(call).detach, call.parameters["id"], call.parameters["file"])
    return Answer({"id": call.parameters["file"], "object": "vector_store.file.deleted", "deleted": True})


async def upload(call: Call) -> Answer:
    """multipart/form-data with `file` and `purpose`."""
    settings = _settings(call)
    given = await asyncio.to_thread(uploaded, call.headers.get("content-type", ""), call.raw)
    if not any(given.name.lower().endswith(ending) for ending in settings.supported_formats):
        raise ManagementError("INVALID_INPUT", f"{given.name} is of no known format", fix=f"Upload one of {', '.join(settings.supported_formats)}.")
    if len(given.content) > settings.max_file_size_mb << 20:
        raise ManagementError("INPUT_TOO_LARGE", f"{given.name} has more than {settings.max_file_size_mb} MiB", 413)
    made = await asyncio.to_thread(_stores(call).add_file, given.name, given.content, given.purpose)
    return Answer(made.described(), 201)


async def files(call: Call) -> Answer:
    found, total = await asyncio.to_thread(_stores(call).files, call.number("limit", 20, 100), call.number("offset", 0, 10**9))
    return Answer({"object": "list", "total": total, "data": [each.described() for each in found]})


async def file(call: Call) -> Answer:
    return Answer((await asyncio.to_thread(_stores(call).file, call.parameters["id"])).described())


async def content(call: Call) -> Answer:
    return Answer(await asyncio.to_thread(_stores(call).content, call.parameters["id"]), content_type="application/octet-stream")


async def delete_file(call: Call) -> Answer:
    await asyncio.to_thread(_stores(call).delete_file, call.parameters["id"])
    return Answer({"id": call.parameters["id"], "object": "file", "deleted": True})


async def _attach(call: Call, store_id: str, file_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    held, chunking = _stores(call), _chunking(body.get("chunking_strategy"))
    found = await asyncio.to_thread(held.attach, store_id, file_id, _object(body, "attributes"))
    ingestion = call.state.services.vector_stores.ingestion(held, _settings(call))
    ingestion.start(found.store, found.file, chunking, _reader(call))
    return found.described()


def _chunking(said: Any) -> Chunking:
    """As OpenAI's API takes it: `{"type": "static", "static": {"max_chunk_size_tokens", "chunk_overlap_tokens"}}`."""
    if said is None or (isinstance(said, Mapping) and said.get("type") == "auto"):
        return Chunking()
    static = said.get("static") if isinstance(said, Mapping) else None
    size = static.get("max_chunk_size_tokens") if isinstance(static, Mapping) else None
    overlap = static.get("chunk_overlap_tokens", 0) if isinstance(static, Mapping) else None
    if not isinstance(size, int) or not isinstance(overlap, int):
        raise RequestError("chunking_strategy must be auto, or static with max_chunk_size_tokens", param="chunking_strategy")
    return Chunking(size, overlap)


def _reader(call: Call) -> Embed:
    async def embed(texts: Sequence[str]) -> Any:
        made = await _vectors(call, texts)
        if isinstance(made, Unanswered):
            return made
        if not made.read_all:
            raise IngestionError("the embedding model cannot read a piece in full: use a smaller max_chunk_size_tokens")
        wanted = _settings(call).embedding_dimension
        if wanted not in (None, made.vectors.shape[1]):
            raise IngestionError(f"embedding_dimension is {wanted}, and the model gives {made.vectors.shape[1]} numbers")
        return made.vectors, made.representation

    return embed


async def _vectors(call: Call, texts: Sequence[str]) -> Embedded | Unanswered:
    with call.state.generations.use() as generation:
        recipe = generation.recipes["default"].recipe
        deployment = store_embedding(_settings(call).embedding_model, recipe, "vector_store")
        with calls(generation) as asking:
            return await embedded(asking, deployment, texts)


def _settings(call: Call) -> VectorStore:
    return vector_settings(call.state.generations.current.document)


def _stores(call: Call) -> VectorStores:
    found = call.state.services.vector_stores.open(call.state.generations.current.document, call.state.services.state)
    if found is None:
        raise switched_off("the vector store", "Set global.stores.vector_store.enabled.")
    return found


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ManagementError("INVALID_INPUT", "name must be 1 to 128 printable characters")
    return value


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name, {})
    if not isinstance(found, Mapping) or len(found) > 16 or any(not isinstance(value, str | int | float | bool) for value in found.values()):
        raise ManagementError("INVALID_INPUT", f"{name} must be an object of at most 16 texts, numbers and booleans")
    return found


def _strings(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ManagementError("INVALID_INPUT", f"{name} must be a list of strings")
    return value


_ROOT, _FILES = "/api/v1/storage/vector-stores", "/api/v1/storage/files"
ROUTES = (
    Route("POST", _ROOT, create, "data.write", "Make a vector store."),
    Route("GET", _ROOT, stores, "data.read", "Vector stores, the newest first."),
    Route("GET", f"{_ROOT}/{{id}}", store, "data.read", "One vector store."),
    Route("POST", f"{_ROOT}/{{id}}", update, "data.write", "Rename a vector store, or replace its metadata."),
    Route("DELETE", f"{_ROOT}/{{id}}", delete, "data.write", "Delete a vector store."),
    Route("POST", f"{_ROOT}/{{id}}/search", search, "data.read", "Passages that fit a question."),
    Route("POST", f"{_ROOT}/{{id}}/files", attach, "data.write", "Read a file into a vector store."),
    Route("GET", f"{_ROOT}/{{id}}/files", attached, "data.read", "The files of a vector store."),
    Route("GET", f"{_ROOT}/{{id}}/files/{{file}}", attached_file, "data.read", "How far a file was read."),
    Route("DELETE", f"{_ROOT}/{{id}}/files/{{file}}", detach, "data.write", "Take a file out of a vector store."),
    Route("POST", _FILES, upload, "data.write", "Upload a file."),
    Route("GET", _FILES, files, "data.read", "Uploaded files, the newest first."),
    Route("GET", f"{_FILES}/{{id}}", file, "data.read", "One file."),
    Route("GET", f"{_FILES}/{{id}}/content", content, "data.read", "What was uploaded."),
    Route("DELETE", f"{_FILES}/{{id}}", delete_file, "data.write", "Delete a file, also from vector stores."),
)
