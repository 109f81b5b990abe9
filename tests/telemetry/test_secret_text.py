"""Secrets in text: every form, many of them, forms inside each other, and texts made to hold a mask up."""

from __future__ import annotations

import pytest

from headway.telemetry.secret_forms import FORMS
from headway.telemetry.secret_text import without_secrets

_KEY = "Zx9Qw3Er5Ty7Ui1Op"


def masked(text: str) -> str:
    return without_secrets(text, "***")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api_key=Zx9Qw3Er", "api_key=***"),
        ("{'api_keys': ['Zx9Qw3Er', 'other one'], 'port': 1}", "{'api_keys': ['***', '*** ***'], 'port': 1}"),
        ("--api-key one two --port 1", "--api-key *** *** --port 1"),
        ("argv: ['--hf-token', 'Zx9Qw3Er', '--port', '1']", "argv: ['--hf-token', '***', '--port', '1']"),
        ('\\"token\\": \\"Zx9Qw3Er\\", \\"n\\": 1', '\\"token\\": \\"***\\", \\"n\\": 1'),
        ("password: |\n  line one\n  line two\nport: 1", "password: |\n  ***\nport: 1"),
        ("apiVersion: v1\nkind: Secret\ndata:\n  any: Zx9Qw3Er\n", "apiVersion: v1\nkind: Secret\ndata:\n  ***\n"),
        ("https://ghtoken@github.com/a", "https://***@github.com/a"),
        ("https://user:Zx9@h/ and http://h:80/a@b", "https://user:***@h/ and http://h:80/a@b"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"),
        ("the header was Basic dXNlcjpwYXNz", "the header was Basic ***"),
        ("HF_TOKEN=hf_abcdefgh12345678", "HF_TOKEN=***"),
        ("it was hf_abcdefgh12345678", "it was hf_***"),
        ("\u0130\u0130 password=Zx9Qw3Er", "\u0130\u0130 password=***"),
    ],
)
def test_what_goes_and_what_stays(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Basic authentication is off, bearer of news",
        "eos_token: </s>, the token: 17, unexpected token: 'x'",
        "task-force-of-mine, disk_usage_percent_now, sk-learn-is-no-key",
        "kind: ConfigMap\ndata:\n  any: value\n",
        "key: value, keys=3, KeyError: 'layers.0'",
        "hf auth login --token <your token>, --password $PASSWORD",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize("piece", ["token={key} ", "api_key: {key}, ", "'password': '{key}', ", "--api-key {key} --x ", "http://u:{key}@h/ ", "Bearer {key} ", "sk-{key} ", "cookie: a={key}\n"])
def test_many_of_one_form(piece: str) -> None:
    text = piece.format(key=_KEY) * 5_000
    found = masked(text)
    assert _KEY not in found
    assert found.count("***") == 5_000


@pytest.mark.parametrize(
    "piece",
    ["token ", "token=[", "token='", "token=\\'", "token: |\n ", "--", "--token ", "://", "a://u:p", "-----BEGIN PRIVATE KEY-----", "cookie: ", "hf_", "eyJ", "api_key ", "authorization ", "\u0130key="],
)
@pytest.mark.timeout(60)
def test_texts_made_to_hold_it_up_come_to_an_end(piece: str) -> None:
    assert masked(piece * (200_000 // len(piece))) != ""


def test_every_form_begins_at_its_hints() -> None:
    for form in FORMS:
        assert form.hints
        assert all(hint == hint.lower() and len(hint) >= 2 for hint in form.hints)
