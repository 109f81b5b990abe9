"""--kv-transfer-config: the fields of vLLM's KVTransferConfig, read into TransferSettings."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args

from headway.errors import ConfigError, NotBuiltError

PARAM: Final = "kv_transfer_config"
KEY_VARIABLE: Final = "HEADWAY_KV_TRANSFER_KEY"
CONNECTORS: Final = ("HeadwayConnector", "NixlConnector")  # two names of one thing
Role = Literal["kv_producer", "kv_consumer", "kv_both"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
POLICIES: Final = ("recompute", "fail")
WITHOUT_EFFECT: Final = ("enable_permute_local_kv", "kv_parallel_size", "kv_rank")
FIELDS: Final = (
    "kv_connector", "kv_role", "kv_ip", "kv_port", "engine_id", "kv_buffer_size", "kv_buffer_device", "kv_load_failure_policy", "kv_connector_extra_config",
    *WITHOUT_EFFECT,
)  # fmt: skip
EXTRA_FIELDS: Final = ("kv_lease_duration", "max_leases", "pull_timeout")


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """Seconds and bytes. `port` 0 = any free one."""

    role: Role
    host: str = "127.0.0.1"
    port: int = 14579
    engine_id: str | None = None
    buffer_bytes: int = 1_000_000_000  # of pulled blocks that wait for their place in the cache
    lease_seconds: float = 120.0  # a finished prefill is kept so long for whoever pulls it
    most_leases: int = 256
    pull_seconds: float = 30.0
    fails: bool = False  # a prompt that cannot be pulled ends its request, instead of being computed

    @property
    def produces(self) -> bool:
        return self.role != "kv_consumer"

    @property
    def consumes(self) -> bool:
        return self.role != "kv_producer"


class TransferFlags(Protocol):
    """What of an EngineConfig matters here."""

    @property
    def kv_transfer_config(self) -> Mapping[str, Any]: ...

    @property
    def enable_prefix_caching(self) -> bool: ...

    @property
    def enable_sleep_mode(self) -> bool: ...

    @property
    def tensor_parallel_size(self) -> int: ...

    @property
    def pipeline_parallel_size(self) -> int: ...


def transfer_settings(flags: TransferFlags) -> TransferSettings | None:
    """None without the flag. Raises ConfigError, and NotBuiltError for connectors and combinations that do not exist."""
    given = flags.kv_transfer_config
    if not given:
        return None
    _known(given, FIELDS, "")
    extra = given.get("kv_connector_extra_config") or {}
    if not isinstance(extra, Mapping):
        raise _wrong("kv_connector_extra_config", extra, "an object")
    _known(extra, EXTRA_FIELDS, "kv_connector_extra_config.")
    _check_connector(given.get("kv_connector"))
    if given.get("kv_buffer_device", "cpu") != "cpu":
        raise NotBuiltError(f"{PARAM}: kv_buffer_device {str(given['kv_buffer_device'])[:40]!r} is not built: blocks pass through main memory", param=PARAM, fix='Leave it out, or write "cpu".')
    policy = given.get("kv_load_failure_policy", "recompute")
    if policy not in POLICIES:
        raise _wrong("kv_load_failure_policy", policy, f"one of {', '.join(POLICIES)}")
    _check_company(flags)
    return TransferSettings(
        role=_role(given.get("kv_role")),
        host=_host(given.get("kv_ip", "127.0.0.1")),
        port=int(_number(given, "kv_port", 14579, 0, 65535, whole=True)),
        engine_id=_engine_id(given.get("engine_id")),
        buffer_bytes=int(_number(given, "kv_buffer_size", 1e9, 1, 2**50)),
        lease_seconds=_number(extra, "kv_lease_duration", 120.0, 1, 86400),
        most_leases=int(_number(extra, "max_leases", 256, 1, 65536, whole=True)),
        pull_seconds=_number(extra, "pull_timeout", 30.0, 0.1, 3600),
        fails=policy == "fail",
    )


def _check_company(flags: TransferFlags) -> None:
    if not flags.enable_prefix_caching:
        raise ConfigError(
            "--kv-transfer-config needs the prefix cache, by whose hashes blocks are named and found", param=PARAM, fix="Leave --no-enable-prefix-caching out."
        )
    for name, on in (
        ("enable_sleep_mode", flags.enable_sleep_mode),
        ("tensor_parallel_size", flags.tensor_parallel_size > 1),
        ("pipeline_parallel_size", flags.pipeline_parallel_size > 1),
    ):
        if on:
            raise NotBuiltError(f"--kv-transfer-config together with --{name.replace('_', '-')} is not built yet", param=PARAM, fix="Leave one of them out.")


def _check_connector(name: object) -> None:
    if not isinstance(name, str):
        raise _wrong("kv_connector", name, f"one of {', '.join(CONNECTORS)}")
    if name not in CONNECTORS:
        raise NotBuiltError(
            f"{PARAM}: the connector {name[:60]!r} is not built. Headway moves blocks over TCP itself", param=PARAM, fix=f"Write {CONNECTORS[0]}, at both ends."
        )


def _known(given: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in names:
            raise ConfigError(f"{PARAM}: there is no field {where}{str(name)[:60]!r}; known are {', '.join(names)}", param=PARAM)


def _role(value: object) -> Role:
    role = next((role for role in ROLES if role == value), None)
    if role is None:
        raise _wrong("kv_role", value, f"one of {', '.join(ROLES)}")
    return role


def _host(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 255:
        raise _wrong("kv_ip", value, "an address or a name")
    try:
        wildcard = ipaddress.ip_address(value).is_unspecified
    except ValueError:
        wildcard = False  # a name
    if wildcard:
        raise ConfigError(f"{PARAM}: kv_ip {value} is no address under which another host reaches this one", param=PARAM, fix="Give the address of one interface.")
    return value


def _engine_id(value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 128):
        raise _wrong("engine_id", value, "a text of 1 to 128 characters")
    return value


def _number(given: Mapping[str, Any], name: str, default: float, low: float, high: float, *, whole: bool = False) -> float:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not low <= value <= high or (whole and value != int(value)):
        raise _wrong(name, value, f"{'a whole number' if whole else 'a number'} from {low:g} to {high:g}")
    return float(value)


def _wrong(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{PARAM}: {name} must be {expected}, got {str(value)[:60]!r}", param=PARAM)
