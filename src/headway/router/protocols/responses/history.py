"""The items of the answers that a response follows."""

from __future__ import annotations

from headway.errors import NotFoundError
from headway.router.protocols.responses.items import MOST_ITEMS, Item
from headway.router.protocols.responses.store import Record, ResponseStore
from headway.router.request.identity import Identity

_MOST_ANSWERS = 1000


def owner_of(identity: Identity) -> str:
    """Whoever asks again must be the same: key, user and tenant, as far as they are known."""
    return "\0".join((identity.key or "", identity.user or "", identity.tenant or ""))


async def owned(store: ResponseStore, name: str, identity: Identity) -> Record:
    """Raises NotFoundError, also for what belongs to somebody else."""
    record = await store.get(name)
    if record is None or record["owner"] != owner_of(identity):
        raise NotFoundError(f'There is no response "{name[:80]}"', reason="response_not_found", param="response_id")
    return record


async def history_items(store: ResponseStore, name: str | None, identity: Identity) -> list[Item]:
    """Inputs and outputs from the first answer of the chain to `name`, oldest first. Raises NotFoundError for a chain with a gap or without end."""
    links: list[list[Item]] = []
    count = 0
    while name is not None:
        record = await owned(store, name, identity)
        links.append([*record["input"], *record["response"]["output"]])
        count += len(links[-1])
        name = record["response"].get("previous_response_id")
        if len(links) > _MOST_ANSWERS or count > MOST_ITEMS:
            raise NotFoundError(f"The response follows more than {_MOST_ANSWERS} answers or {MOST_ITEMS} items", reason="response_not_found")
    return [item for link in reversed(links) for item in link]
