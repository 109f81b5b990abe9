"""L1: what was named is not a model: a typing error, a path that is not there, an adapter, or nothing in the cache."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Abstention, Fix, Found
from headway.doctor.rules.loading.folder_kinds import adapter_folder, gguf_folder
from headway.doctor.rules.loading.model_folder import file_named, model_files, model_place
from headway.doctor.rules.loading.nearest_name import nearest_known, same_size, with_known_owner
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

_REASONS: Final = "unknown_model|missing_file|wrong_case|adapter_only|missing_config|not_a_model|no_weights|offline_not_cached|hub_unreachable|hub_not_found"
NOT_A_MODEL: Final = (
    sight(
        "is not a local folder and is not a valid model identifier",
        "is not a valid model identifier",
        pattern=r"(?<![^\s'\"`])(?P<name>[^\s'\"`]{1,300})['\"`]? is not a (?:local folder and is not a )?valid model identifier",
    ),
    sight(
        "does not appear to have a file named",
        pattern=r"(?<![^\s'\"`])(?P<name>[^\s'\"`]{1,300})['\"`]? does not appear to have (?:a file|files) named (?:config\.json|pytorch_model|model\.safetensors|tf_model)",
    ),
    sight("Repo id must", pattern=r"Repo id must [^:]*: '(?P<name>[^']*)'"),
    sight("Incorrect path_or_model_id", pattern=r"Incorrect path_or_model_id: '(?P<name>[^']*)'"),
    sight(
        "Invalid repository ID or local directory specified",
        pattern=r"Invalid repository ID or local directory specified: '(?P<name>[^']*)'",
    ),
    sight("Unrecognized model in", pattern=r"Unrecognized model in (?P<name>\S+?)\. Should have a"),
    sight("Can't load the configuration of", pattern=r"Can't load the configuration of '(?P<name>[^']+)'"),
    sight("Cannot find any model weights with", pattern=r"Cannot find any model weights with [`'\"](?P<name>[^`'\"]+)"),
    sight(
        "failed to open GGUF file",
        pattern=r"failed to open GGUF file '?(?P<name>[^'\s]+)'? ?\((?:No such|Permission|Is a)",
    ),
    sight(
        "No such file or directory",
        pattern=r"error loading model: (?:.*: )?failed to open (?P<name>\S+?): No such file or directory",
    ),
    sight(
        *(f"[{reason}]" for reason in _REASONS.split("|")),
        pattern=rf"(?:The model cannot be served|headway(?: \w+)?): '?(?P<name>[^\s:']+).*\[(?P<reason>{_REASONS})\]\s*$",
    ),
)
OFFLINE: Final = sight(
    "offline mode is enabled",
    "outgoing traffic has been disabled",
    "couldn't connect to '",
    "couldn't find them in the cached files",
    "couldn't find it in the cached files",
    "Cannot find the requested files in the disk cache",
    "and the hub cannot be reached at",
    "forbids the network",
)
NOT_FOUND: Final = sight(
    "Repository Not Found for url",
    "404 Client Error",
    pattern=r"(?:Repository Not Found|404 Client Error\b.*?) for url: https?://[^/\s]+/(?:api/models/)?(?P<name>[\w.\-]+/[\w.\-]*[\w\-])",
)
REFUSED: Final = sight("401 Client Error", "403 Client Error")
MEANT: Final = re.compile(r"Did you mean (?P<near>\S+?)(?:, which is there)?\?|does not exist, (?P<right>\S+) does")
REVISION: Final = sight(
    "is not a valid git identifier",
    "Revision Not Found for url",
    "Invalid rev id",
    pattern=r"(?:(?<![\w.\-/])(?P<revision>[\w.\-/]{1,200}) is not a valid git identifier|Revision Not Found|Invalid rev id:? (?P<id>\S+))",
)


def not_a_model(case: Case) -> Found | Abstention | None:
    """The name in the message is compared with what is on disk, with known owners, and with the kinds of folders that
    look like a model and are none."""
    hit = case.log.first(*NOT_A_MODEL)
    if hit is None:
        hit = case.log.first(OFFLINE) or case.log.first(REVISION) or _no_repository(case)
    if (
        hit is None
        or overcome(case, hit)
        or of_the_model_runtime(case)
        or only_a_warning(hit)
        or "ip=" in hit.line.process
    ):
        return None
    name = _name(case, hit)
    for variant in _VARIANTS:
        if found := variant(case, name, hit):
            return found
    return _unknown(case, name, hit)


def _no_repository(case: Case) -> Hit | None:
    """The hub does not know the repository. It also answers 401 for names that do not exist; then only a near known name
    speaks for a typing error."""
    hit = next(
        (hit for hit in case.log.hits(NOT_FOUND) if hit.line.text[: hit.match.end()].find("Repository Not Found") >= 0),
        None,
    )
    if hit is None:
        return None
    misspelt = nearest_known(hit["name"], map(str, case.context.items("model.cached"))) or with_known_owner(hit["name"])
    return hit if misspelt or not case.log.sees(REFUSED) else None


def _name(case: Case, hit: Hit) -> str:
    groups = hit.match.groupdict()
    named = (groups.get("name") or "").rstrip(".,;")
    if not named and (refused := case.log.first(NOT_FOUND)):
        named = refused["name"]
    return named or model_place(case)


# first parts of a relative path; no owner on the hub is called like this
_FOLDERS: Final = frozenset(
    {"models", "model", "checkpoints", "checkpoint", "weights", "output", "outputs", "data", "ckpt", "hub"}
)


def _path(case: Case, name: str, hit: Hit) -> Found | None:
    # `a/b` may be a hub id; anything that starts like a path, or has more parts, is one
    near = nearest_known(name, [str(known) for known in case.context.items("model.cached")])
    like_a_folder = name.split("/")[0].lower() in _FOLDERS and not near and not with_known_owner(name)
    if (
        not name.startswith(("/", "./", "../", "~"))
        and name.count("/") < 2
        and not name.endswith(".gguf")
        and not like_a_folder
    ):
        return None
    if MEANT.search(hit.line.text):
        return None
    relative = not name.startswith(("/", "~"))
    inside = case.context.get("host.in_container") is True
    missing = model_files(case) and file_named(case, "config.json") is None
    if "Should have a `model_type` key" in hit.line.text:
        why = Words(
            f"config.json of {name} has no model_type, so that the class of the model cannot be told: it is empty, damaged, or of another format",
            f"{name} 的 config.json 没有 model_type，无法判断模型的类：该文件为空、已损坏或属于其他格式",
        )
        missing = True
    elif missing:
        held = ", ".join(file.name for file in model_files(case)[:4])
        why = Words(
            f"The folder {name} has no config.json (it holds {held}): it is not the folder of a model",
            f"目录 {name} 中没有 config.json（其中有 {held}）：它不是模型目录",
        )
    elif relative:
        why = Words(
            f"{name} is a relative path and does not exist from the directory in which the server was started, so it was taken for a name on the hub",
            f"{name} 是相对路径，在服务器的启动目录下不存在，因此被当成了模型库中的名字",
        )
    else:
        why = Words(
            f"The path {name} is no model folder where the server runs", f"在服务器运行的位置，路径 {name} 不是模型目录"
        )
    hint = (
        Words("; inside a container only mounted folders exist", "；容器内只存在挂载进去的目录")
        if inside
        else Words("", "")
    )
    folder = name if not name.endswith(".gguf") else name.rsplit("/", 1)[0]
    mount = folder.rstrip("/")
    fixes = (
        [Fix(Words("use the folder that exists, spelt like this", "使用实际存在的目录，按此拼写"), f"--model {near}")]
        if near
        else []
    )
    if inside and not relative and not missing:
        fixes.append(Fix(Words("mount the folder at that place", "把目录挂载到该位置"), f"-v {mount}:{mount}:ro"))
    fixes.append(
        Fix(
            Words(
                "look at the place and give the absolute path of the folder with config.json",
                "检查该位置，并给出含 config.json 目录的绝对路径",
            ),
            f"ls -la {folder}",
        )
    )
    return Found(
        cause=Words(f"{why.en}{hint.en}.", f"{why.zh}{hint.zh}。"),
        evidence=[hit.quote()],
        fixes=fixes,
        verify=Words(
            f"`headway plan {near or name}` prints the architecture and the size",
            f"`headway plan {near or name}` 打印架构和大小",
        ),
        confidence=0.9,
    )


def _revision(case: Case, name: str, hit: Hit) -> Found | None:
    seen = case.log.first(REVISION)
    if seen is None:
        return None
    revision = seen["revision"] or seen["id"] or case.launch.value("revision")
    return Found(
        cause=Words(
            f"{name} has no revision {revision or 'of that name'}: the branch, tag or commit is misspelt or was removed.",
            f"{name} 没有名为 {revision or '该名称'} 的版本：分支、标签或提交拼写有误或已被删除。",
        ),
        evidence=[seen.quote()],
        fixes=[
            Fix(Words("use the main branch", "使用主分支"), "--revision main"),
            Fix(
                Words(
                    "or copy the full 40-digit commit from the history of the repository",
                    "或从仓库历史中复制完整的 40 位提交号",
                )
            ),
        ],
        verify=Words(
            f"`hf download {name} config.json --revision main` succeeds",
            f"`hf download {name} config.json --revision main` 成功",
        ),
        confidence=0.9,
        title=Words("The revision does not exist", "该版本不存在"),
    )


def _offline(case: Case, name: str, hit: Hit) -> Found | None:
    seen = case.log.first(OFFLINE)
    known = [str(known) for known in case.context.items("model.cached")]
    near = nearest_known(name, known)
    if seen is None or (near and same_size(near, name)):
        return None
    forced = next(
        (
            variable
            for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
            if case.context.text(f"env.{variable}") in ("1", "True", "true", "yes")
        ),
        "",
    )
    reason = (
        Words(f"{forced}=1 forbids the network", f"{forced}=1 禁止联网")
        if forced
        else Words("the hub cannot be reached", "无法连接模型库")
    )
    evidence = (
        [seen.quote()]
        + ([case.context.quote(f"env.{forced}")] if forced else [])
        + ([hit.quote()] if hit.line.number != seen.line.number else [])
    )
    folder = case.context.text("env.HF_HUB_CACHE") or case.context.text("env.HF_HOME")
    fixes = [
        Fix(
            Words(
                "fetch it once on a connected machine, and carry the cache folder over",
                "在能联网的机器上下载一次，再把缓存目录拷贝过来",
            ),
            f"hf download {name}" + (f" --cache-dir {folder}" if folder else ""),
        )
    ]
    if forced:
        fixes.append(
            Fix(
                Words("or allow the network for the first start", "或在首次启动时允许联网"),
                f"env -u {forced} {case.launch.command or f'vllm serve {name}'}",
            )
        )
    fixes.append(
        Fix(Words("or give the folder of a downloaded copy instead of the name", "或用已下载副本的目录代替名字"))
    )
    return Found(
        cause=Words(
            f"{name} is not completely in the cache and {reason.en}, so that no file of it can be read. The name itself may be right.",
            f"{name} 不在缓存中（或不完整），而{reason.zh}，因此读不到它的任何文件。名字本身可能没有错。",
        ),
        evidence=evidence,
        fixes=fixes,
        verify=Words(
            f"`HF_HUB_OFFLINE=1 hf download {name}` ends without an error",
            f"`HF_HUB_OFFLINE=1 hf download {name}` 无错误结束",
        ),
        confidence=0.92,
        title=Words("Offline, and the model is not in the cache", "离线且缓存中没有该模型"),
        explains=("N19", "N1", "N20"),
    )


def _spelling(case: Case, name: str, hit: Hit) -> Found | None:
    known = [str(known) for known in case.context.items("model.cached")]
    near = nearest_known(name, known)
    meant = MEANT.search(hit.line.text)
    right = (meant["near"] or meant["right"] if meant else "") or near or with_known_owner(name)
    if not right:
        return None
    evidence = [hit.quote()]
    if near == right:
        evidence.append(case.context.quote(f"model.cached.{known.index(near)}"))
    only_case = right.lower() == name.lower()
    difference = (
        Words(
            "no such folder exists from where the server was started, and no owner on the hub is called like this",
            "在服务器的启动目录下没有这个目录，模型库中也没有这样的所有者",
        )
        if name.split("/")[0].lower() in _FOLDERS
        else Words("only upper and lower case differ", "只有大小写不同")
        if only_case
        else Words("the name is misspelt", "名字拼写有误")
    )
    return Found(
        cause=Words(
            f"There is no model {name}: {difference.en}; the closest {'one on this machine' if near == right else 'known name'} is {right}.",
            f"没有名为 {name} 的模型：{difference.zh}；最接近的{'本机已有模型' if near == right else '已知名字'}是 {right}。",
        ),
        evidence=evidence,
        fixes=[Fix(Words("use the closest name", "使用最接近的名字"), _started_with(case, name, right))],
        verify=Words(
            f"`headway plan {right}` prints the architecture and the size", f"`headway plan {right}` 打印架构和大小"
        ),
        confidence=0.95 if near == right or meant else 0.85,
    )


def _unknown(case: Case, name: str, hit: Hit) -> Found:
    refused = case.log.first(NOT_FOUND)
    return Found(
        cause=Words(
            f"{name or 'The model'} is neither a folder here nor a name that the hub knows"
            + (" (it answered 404)" if refused else "")
            + ": misspelt, renamed, or a path that does not exist where the server runs.",
            f"{name or '该模型'} 既不是本地目录，也不是模型库认识的名字{'（返回 404）' if refused else ''}：可能拼写有误、已改名，或路径在服务器运行处不存在。",
        ),
        evidence=[hit.quote(), *([refused.quote()] if refused else [])],
        fixes=[
            Fix(
                Words(
                    "copy the exact name (owner/name) from the page of the model, or give the absolute path of a folder with config.json",
                    "从模型页面复制准确的名字（所有者/名称），或给出含 config.json 目录的绝对路径",
                )
            ),
            Fix(Words("list what is on this machine", "列出本机已有的模型"), "hf cache ls"),
        ],
        verify=Words(
            "`headway plan` with the corrected name prints the architecture and the size",
            "用更正后的名字运行 `headway plan`，会打印架构和大小",
        ),
        confidence=STATED if refused else 0.85,
    )


def _started_with(case: Case, wrong: str, right: str) -> str:
    command = case.launch.command
    return command.replace(wrong, right) if wrong in command else f"vllm serve {right}"


_VARIANTS: Final[tuple[Callable[[Case, str, Hit], Found | None], ...]] = (
    _revision,
    adapter_folder,
    gguf_folder,
    _offline,
    _path,
    _spelling,
)

RULES: Final = (
    Rule(
        id="L1",
        title=Words("The name or path is not a model", "名字或路径不是模型"),
        symptoms=Words(
            "`is not a local folder and is not a valid model identifier`, `does not appear to have a file named config.json`",
            "`is not a local folder and is not a valid model identifier`、`does not appear to have a file named config.json`",
        ),
        why=Words(
            "a typing error or the wrong case, a relative path, a path outside the container, an adapter or GGUF folder, or offline with an empty cache",
            "拼写或大小写错误、相对路径、容器外的路径、只有适配器或 GGUF 的目录，或离线且缓存为空",
        ),
        needs=Words("the name, the names in the cache, the listing of the folder", "名字、缓存中的名字、目录列表"),
        remedy=Words(
            "the nearest known name; for an adapter its base model with --lora-modules",
            "使用最接近的已知名字；适配器则用基座模型加 --lora-modules",
        ),
        check=Words("`headway plan MODEL` prints architecture and size", "`headway plan MODEL` 打印架构和大小"),
        judge=not_a_model,
        sees=(*NOT_A_MODEL, OFFLINE, NOT_FOUND, REFUSED, REVISION),
        explains=("L6",),
    ),
)
