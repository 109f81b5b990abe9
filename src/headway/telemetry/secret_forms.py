"""How secrets stand in text: after a name that gives them away, in the place of a password, or in a well-known shape.

A form begins at a hint, a few letters that are quick to find; only there its opening is tried, then what stands before it,
then the secret itself. So megabytes without any cost little, and none is read twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SecretForm:
    """`hints`: in small letters. `opening`: matched at a hint, never long; `secret`: matched behind it. Its named group is what
    goes; of one called `items` only the members, so that their quotation marks and commas stay. Both regardless of case
    unless `exact`. `before`: matched at the end of what stands before the hint. `beside`: what else the text must hold, in
    small letters."""

    hints: tuple[str, ...]
    opening: str
    secret: str
    before: str = ""
    beside: str = ""
    exact: bool = False


# a key alone is no secret (of a mapping, of attention): its kind stands before it
KEY_KINDS: Final = (
    r"(?:api|access|secret|private|signing|encryption|auth|account|master|license|service|admin|shared)[_.-]?(?:access[_.-]?)?"
)
KEY: Final = r"keys?(?:[_.-]?id)?"
WORD: Final = r"token|secret|passw(?:or)?d|passphrase|pwd|credentials?|session[_.-]?id|jwt"
# `eos_token`, `sampled token`, `unexpected token`: words of language models
MODEL_WORDS: Final = (
    "bos", "eos", "pad", "unk", "sep", "cls", "mask", "image", "video", "audio", "special", "stop", "next", "per", "added", "think", "start", "end",
    "first", "last", "one", "bad", "new", "sampled", "draft", "unexpected", "invalid", "expected", "each", "a", "the", "this",
)  # fmt: skip
# words that follow `token:` and the like in ordinary text and are no secrets; a name of a variable is none either
PLAIN: Final = (
    r"[\"'\[(]*(?:none|null|true|false|nil|\d{1,9}(?:\.\d+)?|\*+|\[masked|set|[>|][+-]?|unset|yes|no|auto"
    r"|<[^>]*>|\$\{?\w*\}?|\{[\w.]*\}?|\.\.\.|…)?[\"'\])]*"
)
_LINES: Final = r"(?:[ \t]+\S[^\n]*(?:\n|\Z))+"
# name=, name:, "name":, also in JSON inside JSON
_GIVEN: Final = r"(?![A-Za-z0-9])(?:[_.-](?:value|file|b64|base64))?\\?[\"']?\s{0,40}[=:]"
# a block of YAML; a list; a quoted value; a bare one, which is no address
_GIVEN_VALUE: Final = (
    rf"(?:(?<=:)\s*[>|][+-]?\d?[ \t]*\n(?P<block>{_LINES})"
    r"|\s*[\[(](?P<items>[^\[(\])]{1,4000})"
    r"|(?!(?<=:)//)\s*(?:!!\w+\s+)?"
    r"(?:[bru]?\\[\"'](?P<escaped>[^\"'\\]{1,4000})|[bru]?[\"'](?P<quoted>(?:\\.|[^\"'\\]){1,4000})|(?P<bare>[^\s\"',;}\])&]{3,})))"
)


def _shape(prefix: str, rest: str, *hints: str) -> SecretForm:
    """A secret by its look: `prefix` stays, for whoever has to find out which key it was."""
    return SecretForm(hints or (prefix.lower(),), rf"(?<![A-Za-z0-9])(?:{prefix})", f"(?P<value>{rest})", exact=True)


_ANY: Final = "[A-Za-z0-9_-]"
_PLAIN_ANY: Final = "[A-Za-z0-9]"

FORMS: Final = (
    SecretForm(("private key-----",), "private key-----", r"(?P<value>[\s\S]*?)(?=-----END|\Z)", before="-----BEGIN [A-Z ]*"),
    # the members of a Kubernetes secret have names of any kind
    SecretForm(("data:", "stringdata:"), r"(?:string)?data:[ \t]*\n", rf"(?P<value>{_LINES})", before=r"(?:\A|\n)[ \t]*", beside="kind: secret"),
    # Authorization: Bearer xyz, also in JSON and curl -H; cookies to the end of the header
    SecretForm(
        ("authorization",),
        r"authorization\\?[\"']?\s{0,40}[:=,]\s{0,40}\\?[\"']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s{1,40})?",
        r"(?P<value>[^\s\"',}\\]+)",
    ),
    SecretForm(("cookie",), r"(?<![a-z0-9_])cookie[\"']?\s{0,40}:\s{0,40}[\"']?", r"(?P<value>[^\"'\r\n]+)"),
    SecretForm(("bearer",), r"\bbearer\s{1,40}", r"(?P<value>[A-Za-z0-9._~+/=-]{6,})"),
    SecretForm(("basic",), r"\bbasic\s{1,40}", r"(?P<value>(?=[A-Za-z+/]*[0-9=]|(?-i:[A-Za-z]*[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9])"),
    # scheme://user:password@host, scheme://token@host
    SecretForm(("://",), r"(?<=[a-z0-9+.-])://", r"(?:[^\s/:@\"']{1,200}:(?=[^\s/@\"']))?(?P<value>[^\s/@\"']{1,400})@"),
    SecretForm(("hooks.slack.com/services/",), "hooks.slack.com/services/", "(?P<value>[A-Za-z0-9/]+)"),
    # --api-key one two; as words of a list: "--api-key", "one"
    SecretForm(
        ("--",),
        r"--(?=[a-z])[a-z-]{0,32}?(?:api-keys?|token|password|secret|access-key)(?![a-z-])[\"']?(?:[ =]|, ?){1,8}",
        r"(?P<items>(?![\"']?-)[\"']?[^\s\"',\]]+[\"']?(?:(?: +|, ?)(?![\"']?-)[\"']?[^\s\"',\]|;&]+[\"']?)*)",
    ),
    SecretForm(("-u ", "-u=", "--user ", "--user="), r"(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']{1,200}:", r"(?P<value>[^\s\"']+)"),
    SecretForm(("key",), KEY + _GIVEN, _GIVEN_VALUE, before=KEY_KINDS),
    SecretForm(("token", "secret", "passw", "passphrase", "pwd", "credential", "session", "jwt"), f"(?:{WORD}){_GIVEN}", _GIVEN_VALUE),
    *(_shape(f"{kind}[-_]", rf"(?=[a-z_-]{{0,64}}[A-Z0-9]){_ANY}{{8,}}", f"{kind}-", f"{kind}_") for kind in ("sk", "pk", "rk")),
    _shape("hf_", rf"{_PLAIN_ANY}{{12,}}"),
    _shape("gh[pousr]_", rf"{_PLAIN_ANY}{{16,}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _shape("github_pat_", "[A-Za-z0-9_]{20,}"),
    _shape("glpat-", f"{_ANY}{{16,}}"),
    _shape("xox[abeprs]-|xapp-", "[A-Za-z0-9-]{10,}", "xox", "xapp-"),
    _shape("(?:AKIA|ASIA|AROA|AIDA)", "[A-Z0-9]{12,}", "akia", "asia", "aroa", "aida"),
    _shape("AIza", f"{_ANY}{{30,}}"),
    _shape(r"ya29\.", f"{_ANY}{{20,}}", "ya29."),
    _shape("nvapi-", f"{_ANY}{{12,}}"),
    *(_shape(prefix, rf"{_PLAIN_ANY}{{16,}}") for prefix in ("gsk_", "xai-", "r8_", "pplx-")),
    _shape("npm_", rf"{_PLAIN_ANY}{{20,}}"),
    _shape("pypi-", f"{_ANY}{{20,}}"),
    _shape("dop_v1_", "[a-f0-9]{20,}"),
    _shape("eyJ", rf"{_ANY}{{8,}}\.{_ANY}{{4,}}(?:\.{_ANY}*)?"),
    # the same shapes in base64, as Kubernetes secrets hold them
    *(_shape(start, "[A-Za-z0-9+/]{8,}={0,2}") for start in ("c2st", "c2tf", "aGZf", "Z2hwX", "Z2hvX", "Z2l0aHViX3Bhd", "QUtJQ", "QVNJQ", "bnZhcGkt", "Z3NrX")),
    _shape("eG94[YWJlcHJz]", "[A-Za-z0-9+/]{8,}={0,2}", "eg94"),
)  # fmt: skip
