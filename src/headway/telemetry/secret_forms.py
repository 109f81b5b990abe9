"""How secrets stand in text: after a name that gives them away, in the place of a password, or in a well-known shape.

A form begins at a hint, a few letters that are quick to find; only there its pattern is tried, so that megabytes without
any cost nothing. What must stand before the hint is a pattern of its own. The named group that matched is the secret; of
one called `items` only the members go, and their quotation marks and commas stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SecretForm:
    """`hints`: in small letters. `pattern`: matched at a hint, without regard to case unless `exact`. `before`: matched at the
    end of what stands before the hint. `beside`: what else the text must hold, in small letters."""

    hints: tuple[str, ...]
    pattern: str
    before: str = ""
    beside: str = ""
    exact: bool = False


# a key alone is no secret (of a mapping, of attention): its kind stands before it
KEY_KINDS: Final = (
    r"(?:api|access|secret|private|signing|encryption|auth|account|master|license|service|admin|shared)[_.-]?(?:access[_.-]?)?"
)
KEY: Final = r"keys?(?:[_.-]?id)?"
WORD: Final = r"token|secret|passw(?:or)?d|passphrase|pwd|credentials?|session[_.-]?id|jwt"
# `eos_token`, `max_num_batched_tokens`, `unexpected token`: words of language models
MODEL_TOKEN: Final = (
    r"(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio|special|stop|next|per|added|think|start|end|first|last|one|bad|new|sampled|draft"
    r"|unexpected|invalid|expected|each|a|the|this)[_ ]"
)
# words that follow `token:` and the like in ordinary text and are no secrets; a name of a variable is none either
PLAIN: Final = (
    r"[\"'\[(]*(?:none|null|true|false|nil|\d{1,9}(?:\.\d+)?|\*+|\[masked|set|[>|][+-]?|unset|yes|no|auto"
    r"|<[^>]*>|\$\{?\w*\}?|\{[\w.]*\}?|\.\.\.|…)?[\"'\])]*"
)
_LINES: Final = r"(?:[ \t]+\S[^\n]*(?:\n|\Z))+"
# a block of YAML; name: [one, two]; name=value, name: value, "name": "value" (in JSON inside JSON as well), <name>value
_ASSIGNED: Final = (
    r"(?![A-Za-z0-9])(?:[_.-](?:value|file|b64|base64))?"
    rf"(?:[\"']?:\s*[>|][+-]?\d?[ \t]*\n(?P<block>{_LINES})"
    r"|\\?[\"']?\s*[=:]\s*[\[(](?P<items>[^\[(\])]{1,4000})"
    r"|\\?[\"']?\s*(?:=|:(?!//))\s*(?:!!\w+\s+)?"
    r"(?:[bru]?\\[\"'](?P<escaped>[^\"'\\]{1,4000})|[bru]?[\"'](?P<quoted>(?:\\.|[^\"'\\]){1,4000})|(?P<bare>[^\s\"',;}\])&]{3,})))"
)


def _shape(prefix: str, rest: str, *hints: str) -> SecretForm:
    """A secret by its look: `prefix` stays, for whoever has to find out which key it was."""
    return SecretForm(hints or (prefix.lower(),), rf"(?<![A-Za-z0-9])(?:{prefix})(?P<value>{rest})", exact=True)


_ANY: Final = "[A-Za-z0-9_-]"
_PLAIN_ANY: Final = "[A-Za-z0-9]"

FORMS: Final = (
    SecretForm(("private key-----",), r"private key-----(?P<value>[\s\S]*?)(?=-----END|\Z)", before="-----BEGIN [A-Z ]*"),
    # the members of a Kubernetes secret have names of any kind
    SecretForm(("data:", "stringdata:"), rf"(?:string)?data:[ \t]*\n(?P<value>{_LINES})", before=r"(?:\A|\n)[ \t]*", beside="kind: secret"),
    # Authorization: Bearer xyz, also in JSON and curl -H; cookies to the end of the header
    SecretForm(
        ("authorization",),
        r"authorization\\?[\"']?\s*[:=,]\s*\\?[\"']?(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?(?P<value>[^\s\"',}\\]+)",
    ),
    SecretForm(("cookie",), r"(?<![a-z0-9_])cookie[\"']?\s*:\s*[\"']?(?P<value>[^\"'\r\n]+)"),
    SecretForm(("bearer",), r"\bbearer\s+(?P<value>[A-Za-z0-9._~+/=-]{6,})"),
    SecretForm(("basic",), r"\bbasic\s+(?P<value>(?=[A-Za-z+/]*[0-9=]|(?-i:[A-Za-z]*[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9])"),
    # scheme://user:password@host, scheme://token@host
    SecretForm(("://",), r"(?<=[a-z0-9+.-])://(?:[^\s/:@\"']{1,200}:(?=[^\s/@\"']))?(?P<value>[^\s/@\"']{1,400})@"),
    SecretForm(("hooks.slack.com/services/",), r"hooks\.slack\.com/services/(?P<value>[A-Za-z0-9/]+)"),
    # --api-key one two; as words of a list: "--api-key", "one"
    SecretForm(
        ("--",),
        r"--(?=[a-z])[a-z-]{0,32}?(?:api-keys?|token|password|secret|access-key)(?![a-z-])[\"']?(?:[ =]|, ?)+"
        r"(?P<items>(?![\"']?-)[\"']?[^\s\"',\]]+[\"']?(?:(?: +|, ?)(?![\"']?-)[\"']?[^\s\"',\]|;&]+[\"']?)*)",
    ),
    SecretForm(("-u ", "-u=", "--user ", "--user="), r"(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"']+:(?P<value>[^\s\"']+)"),
    SecretForm(("key",), KEY + _ASSIGNED, before=KEY_KINDS),
    SecretForm(("token", "secret", "passw", "passphrase", "pwd", "credential", "session", "jwt"), f"(?:{WORD}){_ASSIGNED}"),
    *(_shape(f"{kind}[-_]", rf"(?=[a-z_-]*[A-Z0-9]){_ANY}{{8,}}", f"{kind}-", f"{kind}_") for kind in ("sk", "pk", "rk")),
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
