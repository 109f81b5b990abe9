"""The rules of the network and of clients: between a caller and a server that runs."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.network import (
    abandoned_work,
    browser,
    handles,
    names_and_keys,
    proxies_and_tls,
    refused,
    request_content,
    stuck_engine,
    taken_address,
    time_limits,
    too_large,
    unreachable,
)
from headway.doctor.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (
    *refused.RULES,
    *names_and_keys.RULES,
    *request_content.RULES,
    *time_limits.RULES,
    *abandoned_work.RULES,
    *too_large.RULES,
    *browser.RULES,
    *taken_address.RULES,
    *proxies_and_tls.RULES,
    *handles.RULES,
    *stuck_engine.RULES,
    *unreachable.RULES,
)
