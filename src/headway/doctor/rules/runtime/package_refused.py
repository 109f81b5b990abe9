"""The runtime refuses a package: damaged (R1), not accessible (R3), unknown family (R9), licence (R10)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.launch import command_flags
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.runtime.deployments import SERVED, Deployment, deployment
from headway.doctor.rules.runtime.refusal import CONSEQUENCES, refusal
from headway.doctor.rules.runtime.statement import Statement, called, stated
from headway.doctor.words import Words

HASH: Final = sight("a file hash does not match")
DENIED: Final = sight("access denied, gated or private")
NO_FAMILY: Final = sight("no family recognizes the package")
LICENCE: Final = sight("a licence must be accepted", "a license must be accepted")
_FILE: Final = re.compile(r"(?P<file>[\w./\-]{1,160}\.(?:safetensors|json|bin|model|txt|gguf|onnx|pt|npz))")
_DIGESTS: Final = re.compile(r"expected (?P<wanted>[0-9a-f]{4,64})\S?,? got (?P<found>[0-9a-f]{4,64})")
_REPOSITORY: Final = re.compile(r"(?<![\w./\-])([A-Za-z0-9][\w.\-]*/[\w.\-]*\w)(?![\w/])")


def repository(found: Statement, place: Deployment) -> str:
    """The hub name: of the message, else of the deployment."""
    named = _REPOSITORY.search(found.rest)
    if named and not named[1].endswith((".safetensors", ".json")):
        return named[1]
    return place.artifact if place.is_hub_name else ""


def cache_folder(case: Case, place: Deployment) -> str:
    """Where this runtime keeps packages: its flag goes before its variables."""
    for command in (*(hit["rest"] for hit in case.log.hits(SERVED)), case.context.text("command")):
        if folder := dict(command_flags(command)).get("cache_dir", ""):
            return folder
    for name in ("VLLM_SRUN_CACHE_DIR", "HF_HUB_CACHE"):
        if value := case.context.text(f"env.{name}"):
            return value
    if home := case.context.text("env.HF_HOME"):
        return f"{home.rstrip('/')}/hub"
    if home := case.context.text("env.HEADWAY_CACHE"):
        return f"{home.rstrip('/')}/model-runtime"
    if place.managed:
        return "models/model-runtime"
    return "${HF_HUB_CACHE:-~/.cache/huggingface/hub}"


def file_is_damaged(case: Case) -> Found | None:
    found = stated(case, HASH)
    if found is None:
        return None
    place = deployment(case, found.model)
    repo = repository(found, place)
    file = m["file"] if (m := _FILE.search(found.rest)) else ""
    digests = _DIGESTS.search(found.rest)
    compared = Words(
        f" (recorded {digests['wanted']}…, found {digests['found']}…)" if digests else "",
        f"（记录为 {digests['wanted']}…，实际为 {digests['found']}…）" if digests else "",
    )
    folder = cache_folder(case, place)
    name = f"models--{repo.replace('/', '--')}" if repo else ""
    what = Words(file or "A file", file or "某个文件")
    local = place.artifact.startswith("/")
    target = place.artifact if local else f"{folder}/{name}" if name else folder
    again = (
        Fix(Words("copy the package anew from its source, in place of the damaged one", "从源头重新复制该包，替换损坏的副本"), None)
        if local
        else Fix(
            Words(
                f"delete this model from the cache, then start again: it is downloaded anew{f' ({repo})' if repo else ''}",
                f"从缓存中删除该模型后重新启动，会重新下载{f'（{repo}）' if repo else ''}",
            ),
            f"rm -rf {target}" if name else f"ls -d {folder}/models--*",
        )
    )
    return Found(
        cause=Words(
            f"{what.en} of {found.model or repo or 'the model'} is not the one that its digest was recorded for{compared.en}: the download is damaged, or the repository has changed."
            " This is final: another attempt reads the same file, and the check has to stay on.",
            f"{found.model or repo or '该模型'} 的 {what.zh} 与记录的摘要不符{compared.zh}：下载损坏，或仓库已改变。这是最终失败：再试读到的仍是同一文件，校验也不应关闭。",
        ),
        evidence=[found.quote],
        fixes=[
            again,
            Fix(Words("a full disk cuts files short: look at the free space of that folder", "磁盘写满会截断文件：查看该目录的剩余空间"), f"df {folder}"),
        ],
        verify=Words(
            f"`sha256sum {target}/snapshots/*/{file or 'model.safetensors'}` prints {digests['wanted'] + '…' if digests else 'the recorded digest'}, and `/v1/models` shows the model as ready",
            f"`sha256sum {target}/snapshots/*/{file or 'model.safetensors'}` 输出 {digests['wanted'] + '…' if digests else '记录的摘要'}，且 `/v1/models` 显示该模型 ready",
        ),
        confidence=STATED,
        explains=CONSEQUENCES,
    )


def access_denied(case: Case) -> Found | None:
    found = stated(case, DENIED)
    if found is None:
        return None
    place = deployment(case, found.model)
    repo = repository(found, place)
    name = called(repo or found.model, "the repository", "该仓库")
    has_token = next((n for n in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") if case.context.has(f"env.{n}")), "")
    token = (
        Words(f"A token is set ({has_token}), so its account has no access yet", f"已设置令牌（{has_token}），说明其账号尚无权限")
        if has_token
        else Words("No token is known to the runtime, or its account has no access", "运行时没有令牌，或其账号没有权限")
    )
    where = Words(
        " (in the environment of the router, which starts the runtime)" if place.managed else "", "（设在启动运行时的路由器环境中）" if place.managed else ""
    )
    return Found(
        cause=Words(
            f"The hub refuses {name.en}: it is gated or private (a misspelt name looks the same). {token.en}. The files in the cache are not at fault.",
            f"Hub 拒绝访问 {name.zh}：它是受限或私有仓库（名称拼错时表现相同）。{token.zh}。与缓存中的文件无关。",
        ),
        evidence=[found.quote, *([case.context.quote(f"env.{has_token}", f"{has_token} is set")] if has_token else [])],
        fixes=[
            Fix(
                Words("accept the terms of the repository with the account that is to load it", "用将要加载它的账号在仓库页面接受条款"),
                f"https://huggingface.co/{repo}" if repo else None,
            ),
            Fix(
                Words(
                    f"then log that account in where the runtime runs, or give its token as HF_TOKEN{where.en}",
                    f"然后在运行时所在处登录该账号，或以 HF_TOKEN 提供其令牌{where.zh}",
                ),
                "hf auth login",
            ),
        ],
        verify=Words(
            f"`hf auth whoami` names the account, and `hf download {repo or '$REPO'} config.json` succeeds",
            f"`hf auth whoami` 显示该账号，且 `hf download {repo or '$REPO'} config.json` 成功",
        ),
        confidence=STATED,
        explains=(*CONSEQUENCES, "L1", "L2"),
    )


def family_is_unknown(case: Case) -> Found | None:
    found = stated(case, NO_FAMILY)
    if found is None:
        return None
    place = deployment(case, found.model)
    kind = _named(found.rest, "model_type") or case.context.text("model.config.model_type")
    head = _named(found.rest, "head")
    architectures = case.context.items("model.config.architectures")
    facts = [
        part
        for part in (
            f"model_type {kind}" if kind else "",
            f"architectures {', '.join(map(str, architectures))}" if architectures else "",
            f"head {head}" if head else "",
        )
        if part
    ]
    shown, shown_zh = (f" ({', '.join(facts)})", f"（{'，'.join(facts)}）") if facts else ("", "")
    name = called(found.model or place.artifact, "The package", "该模型包")
    return Found(
        cause=Words(
            f"{name.en}{shown} is of an architecture or has a head that no family of this runtime knows. The files are in order; trying again or another version of them changes nothing.",
            f"{name.zh}{shown_zh}的架构或输出头不被本运行时的任何模型家族支持。文件本身没有问题；重试或换该模型的版本都无济于事。",
        ),
        evidence=[found.quote],
        fixes=[
            Fix(
                Words("take another model of a supported architecture for this task; this lists them", "为该任务换一个受支持架构的模型；可用列表"),
                "vllm-srun models",
            ),
            Fix(
                Words(
                    f"or install a family plugin that serves {kind or 'it'}; this lists what is installed",
                    f"或安装支持 {kind or '该架构'} 的家族插件；查看已安装的插件",
                ),
                "vllm-srun plugins",
            ),
        ],
        verify=Words(
            "`vllm-srun models` lists the model or its family, and the next start passes `verifying the package`",
            "`vllm-srun models` 列出该模型或其家族，且下次启动越过 `verifying the package`",
        ),
        confidence=STATED,
        explains=(*CONSEQUENCES, "L4", "L5"),
    )


def _named(text: str, what: str) -> str:
    found = re.search(rf"{what}[ =:]+['\"]?([\w.\-]+)", text)
    return found[1] if found else ""


def licence_is_not_accepted(case: Case) -> Found | None:
    found = stated(case, LICENCE)
    if found is None:
        return None
    place = deployment(case, found.model)
    given = (
        re.search(r"--accept-licen[cs]e[ =]`?([\w.\-+]+)", found.rest)
        or re.search(r"(?:under|:) ?([A-Za-z][\w.\-+]*\d?[\w\-+]*)", found.rest)
        or re.match(r"\W*([\w.\-+]+)", found.rest)
    )
    licence = given[1].rstrip(".") if given else ""
    name = called(found.model or place.artifact, "the model", "该模型")
    command = f"--accept-licence {licence}"
    if place.artifact and not place.managed:
        command = f"vllm-srun serve {place.artifact} {command}"
    return Found(
        cause=Words(
            f"{name.en} is under the licence {licence}, which restricts its use, and nobody has accepted it yet. Nothing is broken: a person has to decide whether this use is allowed.",
            f"{name.zh} 采用限制用途的许可证 {licence}，尚未有人接受。没有任何故障：需要由人判断当前用途是否被允许。",
        ),
        evidence=[found.quote],
        fixes=[
            Fix(Words(f"read the terms of {licence}; only if they permit this use, accept it", f"阅读 {licence} 的条款；确认允许当前用途后再接受"), command),
            Fix(Words("if they do not: take a model whose licence permits the use", "若不允许：改用许可证允许该用途的模型"), "vllm-srun models"),
        ],
        verify=Words(
            f"with `--accept-licence {licence}` the log goes on to `verifying the package` and `ready on`",
            f"加上 `--accept-licence {licence}` 后，日志继续到 `verifying the package` 与 `ready on`",
        ),
        confidence=STATED,
        explains=CONSEQUENCES,
    )


_ROWS: Final = (
    ("R1", Words("A file of the package is damaged", "模型包中有文件损坏"), HASH,
     Words("damaged download or changed repository; final", "下载损坏或仓库已改变；最终失败"), Words("the file named, its size, free disk", "所指文件、大小与剩余磁盘"),
     Words("delete that model from the cache and start again", "从缓存删除该模型后重启"), Words("the digest equals the pinned one", "摘要与固定值一致"), file_is_damaged),
    ("R3", Words("No access to the model's repository", "无权访问模型仓库"), DENIED,
     Words("account or token without access", "账号或令牌没有权限"), Words("whether a token is set, and whose", "是否设置了令牌、属于谁"),
     Words("accept the terms; `hf auth login` or HF_TOKEN", "接受条款；`hf auth login` 或 HF_TOKEN"), Words("config.json downloads", "能够下载 config.json"), access_denied),
    ("R9", Words("The runtime does not know this kind of model", "运行时不支持该类模型"), NO_FAMILY,
     Words("architecture or head not supported; final", "架构或输出头不支持；最终失败"), Words("model_type, architectures, head", "model_type、architectures、输出头"),
     Words("a supported architecture, another model, a family plugin", "受支持的架构、换模型或家族插件"), Words("`vllm-srun models`", "`vllm-srun models`"), family_is_unknown),
    ("R10", Words("A licence must be accepted", "需要接受许可证"), LICENCE,
     Words("the licence restricts use", "许可证限制用途"), Words("the licence's id", "许可证标识"),
     Words("read it; if the use is allowed, --accept-licence", "阅读条款；若允许则加 --accept-licence"), Words("it loads", "能够加载"), licence_is_not_accepted),
)  # fmt: skip

RULES: Final = tuple(refusal(*row) for row in _ROWS)
