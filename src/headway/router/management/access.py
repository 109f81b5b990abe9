"""Who may call which management endpoint: bearer tokens with roles."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.document import Document

PERMISSIONS = (
    "health.read", "ready.read", "docs.read", "classify.invoke", "config.read", "config.write", "secret_view", "metrics.read",
    "learning.ingest", "replay.read", "replay.detail", "cache.read", "cache.invalidate", "cache.manage", "compression.read",
    "compression.preview", "compression.manage", "data.read", "data.write",
)  # fmt: skip
_READ = tuple(name for name in PERMISSIONS if name.endswith((".read", ".preview")) or name == "classify.invoke")
BUILT_IN_ROLES: Mapping[str, tuple[str, ...]] = {"admin": PERMISSIONS, "viewer": _READ}
"""Roles that exist without being declared; a declared role of the same name replaces one."""


class UnauthorizedError(HeadwayError):
    """No token, or one that nobody has."""

    reason = "unauthorized"


class ForbiddenError(HeadwayError):
    """The token's role lacks the permission."""

    reason = "forbidden"


@dataclass(frozen=True, slots=True)
class Access:
    """`tokens` maps digests of bearer tokens to roles, `roles` roles to permissions. Without `enabled` everybody may do everything."""

    enabled: bool
    tokens: Mapping[bytes, str]
    roles: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, document: Document, environment: Mapping[str, str]) -> Access:
        """Raises ConfigError for a token whose variable is not set, or a role that nobody declared."""
        services = document.global_.services if document.global_ else None
        auth = services.management_api.auth if services and services.management_api else None
        if auth is None or auth.mode != "bearer":
            return cls(False, {}, {})
        roles = {name: frozenset(having) for name, having in {**BUILT_IN_ROLES, **(auth.roles or {})}.items()}
        tokens: dict[bytes, str] = {}
        for reference in auth.tokens or ():
            token, role = environment.get(reference.env or ""), reference.role or "admin"
            if not token:
                raise ConfigError(
                    f"the management token in variable {reference.env} is not set", param="global.services.management_api.auth.tokens",
                    fix=f"Set {reference.env}, or remove the token.",
                )  # fmt: skip
            if role not in roles:
                raise ConfigError(f'role "{role}" of a management token is not declared', param="global.services.management_api.auth.roles")
            tokens[_digest(token.encode())] = role
        return cls(True, tokens, roles)

    def check(self, authorization: str, permission: str | None) -> str | None:
        """The role of who calls. Raises UnauthorizedError, ForbiddenError."""
        if not self.enabled or permission is None:
            return None
        scheme, _, token = authorization.partition(" ")
        given = _digest(token.strip().encode("latin-1", "replace"))
        found = [role for digest, role in self.tokens.items() if hmac.compare_digest(digest, given)]  # all of them: no early end
        if scheme.lower() != "bearer" or not found:
            raise UnauthorizedError("a management token is needed", fix="Send Authorization: Bearer TOKEN (vllm-sr takes it from VSR_MGMT_TOKEN).")
        if permission not in self.roles[found[0]]:
            raise ForbiddenError(f'role "{found[0]}" lacks the permission {permission}')
        return found[0]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
