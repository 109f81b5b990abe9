"""Throughput: fewer tokens per second than the machine could give."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.rule import Rule
from headway.doctor.rules.throughput.batch_limits import RULES as BATCH_LIMITS
from headway.doctor.rules.throughput.client_side import RULES as CLIENT_SIDE
from headway.doctor.rules.throughput.cpu_backend import RULES as CPU_BACKEND
from headway.doctor.rules.throughput.device_side import RULES as DEVICE_SIDE
from headway.doctor.rules.throughput.eager_mode import RULES as EAGER_MODE
from headway.doctor.rules.throughput.host_core import RULES as HOST_CORE
from headway.doctor.rules.throughput.request_mix import RULES as REQUEST_MIX
from headway.doctor.rules.throughput.speculation import RULES as SPECULATION
from headway.doctor.rules.throughput.split_over_pcie import RULES as SPLIT_OVER_PCIE
from headway.doctor.rules.throughput.structured_output import RULES as STRUCTURED_OUTPUT

RULES: Final[tuple[Rule, ...]] = (
    *BATCH_LIMITS,
    *CLIENT_SIDE,
    *EAGER_MODE,
    *HOST_CORE,
    *CPU_BACKEND,
    *STRUCTURED_OUTPUT,
    *SPECULATION,
    *REQUEST_MIX,
    *SPLIT_OVER_PCIE,
    *DEVICE_SIDE,
)
