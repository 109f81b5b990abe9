"""Variables that a configuration names: told where they are not set."""

from __future__ import annotations

from headway.router.config.load import Source, examine

TEXT = """\
version: v0.3
listeners:
  - name: public
    port: 8899
    keys:
      - {name: ops, key_env: OPS_KEY}
providers:
  models:
    - name: small
      backend_refs:
        - {endpoint: "127.0.0.1:8000", api_key_env: SMALL_KEY}
routing:
  decisions:
    - {name: all, modelRefs: [{model: small}]}
global:
  services:
    management_api:
      auth:
        mode: bearer
        tokens:
          - {env: ADMIN_TOKEN, role: admin}
"""


def test_each_variable_that_is_not_set_is_a_warning_with_its_line() -> None:
    examined = examine(Source(TEXT), {"SMALL_KEY": ""})
    assert examined.valid
    assert [(each.severity, each.line, each.message) for each in examined.diagnostics] == [
        ("warning", 6, "the environment variable OPS_KEY is not set"),
        ("warning", 11, "the environment variable SMALL_KEY is not set"),
        ("warning", 21, "the environment variable ADMIN_TOKEN is not set"),
    ]


def test_variables_that_are_set_are_not_mentioned() -> None:
    assert examine(Source(TEXT), {"OPS_KEY": "a", "SMALL_KEY": "b", "ADMIN_TOKEN": "c"}).diagnostics == ()
