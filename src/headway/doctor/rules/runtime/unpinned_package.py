"""A package that is not named exactly: no commit (R2, R22), no hub id and no absolute path (R21)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.runtime.deployments import deployment
from headway.doctor.rules.runtime.package_refused import repository
from headway.doctor.rules.runtime.refusal import CONSEQUENCES, refusal
from headway.doctor.rules.runtime.statement import Statement, called, stated
from headway.doctor.words import Words

UNPINNED: Final = sight("a revision is required")
NO_ID: Final = sight("artifact must be a Hub repository ID or an absolute package path")
NO_COMMIT: Final = sight("revision must be a 40-hex commit")
WORKING_FOLDER: Final = sight("working directory", pattern=r"working directory:? (?P<folder>/\S*)")
_COMMIT: Final = re.compile(r"\b[0-9a-f]{40}\b")
_QUOTED: Final = re.compile(r"['\"`]([^'\"`]+)['\"`]")


def revision_is_missing(case: Case) -> Found | None:
    found = stated(case, UNPINNED)
    if found is None:
        return None
    place = deployment(case, found.model)
    repo = repository(found, place)
    name = called(repo or found.model, "the repository", "该仓库")
    commit, quotes = _known_commit(case)
    value = commit or f"$(git ls-remote https://huggingface.co/{repo} HEAD | cut -f1)"
    return Found(
        cause=Words(
            f"{name.en} is not one of the built-in models, whose commits are known, so the runtime wants its commit in 40 hex digits. Branches and tags move and are not taken;"
            " the token and the licence have nothing to do with it.",
            f"{name.zh} 不是内置模型（内置模型的 commit 已知），因此运行时要求给出 40 位十六进制 commit。分支与标签会移动，不被接受；这与令牌、许可证无关。",
        ),
        evidence=[found.quote, *quotes],
        fixes=[
            Fix(
                Words("name the 40-digit commit that you have checked, of the runtime", "为运行时指定已核对的 40 位 commit"),
                f"vllm-srun serve {repo}@{value}" if repo else None,
            ),
            Fix(
                Words("of the router's deployment: its field `revision` (40 hex digits)", "路由器的 deployment：填写 `revision` 字段（40 位十六进制）"),
                f"global.model_catalog.deployments.{place.name or found.model or 'primary'}.revision: {commit}" if commit else None,
            ),
            Fix(Words("the repository's page lists its commits", "仓库页面列出其 commit"), f"git ls-remote https://huggingface.co/{repo}" if repo else None),
        ],
        verify=Words(
            "`a revision is required` is gone from the log, and `/v1/models` shows the revision that was given",
            "日志不再出现 `a revision is required`，且 `/v1/models` 显示所给 revision",
        ),
        confidence=STATED,
        explains=CONSEQUENCES,
    )


def _known_commit(case: Case) -> tuple[str, list[Quote]]:
    for path in ("model.revision", "model.commit", "model.sha"):
        if commit := _COMMIT.fullmatch(case.context.text(path)):
            return commit[0], [case.context.quote(path)]
    for index, probe in enumerate(case.context.items("host.probes")):
        if commit := _COMMIT.search(str(probe)):
            return commit[0], [case.context.quote(f"host.probes.{index}")]
    return "", []


def branch_for_a_revision(case: Case) -> Found | None:
    found = stated(case, NO_COMMIT)
    if found is None:
        return None
    place = deployment(case, found.model or _deployment_in(found))
    quoted = _QUOTED.search(found.rest)
    value = quoted[1] if quoted else place.revision
    repo = repository(found, place)
    is_short = bool(re.fullmatch(r"[0-9a-f]{4,39}", value))
    kind = Words("a short hash", "短哈希") if is_short else Words("a branch or tag", "分支或标签")
    shown = f"'{value}'" if value else "the given value"
    commit, quotes = _known_commit(case)
    source = f"https://huggingface.co/{repo}" if repo else ""
    command = f"git ls-remote {source} {'' if is_short else value} | {f'grep ^{value}' if is_short else 'cut -f1'}".replace("  ", " ") if source else None
    if command is None and value and not is_short:
        command = f"git ls-remote https://huggingface.co/$ARTIFACT {value} | cut -f1"
    if commit:
        command = f"revision: {commit}"
    return Found(
        cause=Words(
            f"The revision{f' of {place.name}' if place.name else ''} is {shown}, {kind.en} ({len(value)} characters); a commit of 40 hex digits is wanted, which cannot move.",
            f"{f'{place.name} 的 ' if place.name else ''}revision 为 {shown}，是{kind.zh}（{len(value)} 个字符）；需要不会移动的 40 位十六进制 commit。",
        ),
        evidence=[found.quote, *quotes],
        fixes=[Fix(Words(f"the full commit (40 hex digits) that {shown} stands for", f"改为 {shown} 所指的完整 commit（40 位十六进制）"), command)],
        verify=Words("`vllm-sr config validate --config config.yaml` ends without errors", "`vllm-sr config validate --config config.yaml` 无错误"),
        confidence=STATED,
        explains=(*CONSEQUENCES, "R2"),
    )


def _deployment_in(found: Statement) -> str:
    named = re.search(r"deployments[.\[]['\"]?([\w\-]+)", found.quote.text)
    return named[1] if named else ""


def artifact_is_relative(case: Case) -> Found | None:
    found = stated(case, NO_ID)
    if found is None:
        return None
    name = _deployment_in(found) or found.model
    place = deployment(case, name)
    quoted = _QUOTED.search(found.rest)
    value = quoted[1] if quoted else (m[1] if (m := re.match(r"\W*(\S+)", found.rest)) else place.artifact)
    url = re.match(r"https?://[^/]+/([\w.\-]+/[\w.\-]+)", value)
    folder = case.log.first(WORKING_FOLDER)
    if url:
        kind, target = Words("a URL", " URL"), url[1]
        fix = Fix(Words("the id of the repository, owner/name", "填写仓库标识 owner/name"), _setting(name, target))
        other = Fix(Words("or the absolute path of a copy", "或本地副本的绝对路径"), None)
    else:
        kind = Words("a relative path", "相对路径")
        target = f"{folder['folder'].rstrip('/')}/{value.removeprefix('./')}" if folder else f"$(realpath {value})"
        fix = Fix(Words(f"the absolute path of {value}", f"填写 {value} 的绝对路径"), _setting(name, target))
        other = Fix(Words("or the Hub id of the model, owner/name", "或填写 Hub 上的模型标识 owner/name"), None)
    return Found(
        cause=Words(
            f"The artifact{f' of {name}' if name else ''} is '{value}', {kind.en}: a Hub id (owner/name) or an absolute path is wanted, since the router and the runtime it starts may have different working folders.",
            f"{f'{name} 的 ' if name else ''}artifact 为 '{value}'，是{kind.zh}：需要 Hub 标识（owner/name）或绝对路径，因为路由器与其启动的运行时工作目录可能不同。",
        ),
        evidence=[found.quote, *([folder.quote()] if folder and not url else [])],
        fixes=[fix, other],
        verify=Words("`vllm-sr config validate --config config.yaml` ends without errors", "`vllm-sr config validate --config config.yaml` 无错误"),
        confidence=STATED,
        explains=(*CONSEQUENCES, "L1"),
    )


def _setting(name: str, value: str) -> str:
    return f"global.model_catalog.deployments.{name}.artifact: {value}" if name else f"artifact: {value}"


_ROWS: Final = (
    ("R2", Words("The revision of the model is missing", "缺少模型的 revision"), UNPINNED,
     Words("the repository is not built in", "该仓库不是内置模型"), Words("the commits of the repository", "仓库的 commit"),
     Words("the 40-digit commit", "指定 40 位 commit"), Words("the reason is gone", "该原因消失"), revision_is_missing),
    ("R21", Words("The artifact is no Hub id and no absolute path", "artifact 既非 Hub 标识也非绝对路径"), NO_ID,
     Words("relative path or URL", "相对路径或 URL"), Words("the value", "所填的值"),
     Words("owner/name or the absolute path", "owner/name 或绝对路径"), Words("`vllm-sr config validate`", "`vllm-sr config validate`"), artifact_is_relative, WORKING_FOLDER),
    ("R22", Words("The revision is no full commit", "revision 不是完整 commit"), NO_COMMIT,
     Words("branch, tag or short hash", "分支、标签或短哈希"), Words("the value", "所填的值"),
     Words("the full commit", "完整 commit"), Words("`vllm-sr config validate`", "`vllm-sr config validate`"), branch_for_a_revision),
)  # fmt: skip

RULES: Final = tuple(refusal(*row) for row in _ROWS)
