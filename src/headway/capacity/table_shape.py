"""Registry models that are tables rather than language models: word tables, small networks, exported graphs."""

from __future__ import annotations

from headway.artifacts.registry import RegistryModel
from headway.capacity.model_shape import ModelShape


def table_shape(entry: RegistryModel) -> ModelShape:
    """They hold in memory about what their files take, and keep nothing per token. The registry states the bytes of every file, so
    nothing has to be fetched. Their parameters are not known from that: 0."""
    return ModelShape(
        name=entry.name, kind="table", parameters=0, embeddings=0, head=0, active=0, layers=0, hidden=0,
        heads=0, kv_heads=0, head_dim=0, intermediate=0, vocabulary=0, context_length=None, stored_bytes=entry.nbytes,
        notes=(f"no language model: {entry.about}",),
    )  # fmt: skip
