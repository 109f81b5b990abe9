"""The items of the answers that a response follows."""

from __future__ import annotations

from headway.router.protocols.responses.store import ResponseStore
from headway.router.request.identity import Identity
from headway.wire.responses.items import Item
from headway.wire.responses.records import Record, chain_items, no_response


def owner_of(identity: Identity) -> str:
    """Whoever asks again must be the same: key, user and tenant, as far as they are known."""
    return "\0".join((identity.key or "", identity.user or "", identity.tenant or ""))


async def owned(store: ResponseStore, name: str, identity: Identity) -> Record:
    """Raises NotFoundError, also for what belongs to somebody else."""
    record = await store.get(name)
    if record is None or record["owner"] != owner_of(identity):
        raise no_response(name)
    return record


async def history_items(store: ResponseStore, name: str | None, identity: Identity) -> list[Item]:
    """Inputs and outputs from the first answer of the chain to `name`, oldest first. Raises NotFoundError for a chain with a gap or without end."""

    async def record_of(name: str) -> Record:
        return await owned(store, name, identity)

    return await chain_items(record_of, name)
