"""Nodes that are not alike: another NCCL (D10), other versions (D12), a model path that only some have (D13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.distributed.ranks import node_of, split_of
from headway.doctor.rules.quoted import said
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

MISMATCHED: Final = sight(
    "Mismatched NCCL version", pattern=r"Mismatched NCCL version detected ?: rank (?P<a>\d+) has (?P<old>[\w.+]+) rank (?P<b>\d+) has (?P<new>[\w.+]+)"
)
INVALID_USAGE: Final = sight("invalid usage", "ncclInvalidUsage")
MISSING_SYMBOL: Final = sight("undefined symbol: nccl", pattern=r"undefined symbol: (?P<symbol>nccl\w+)")
LOADED: Final = sight("is using nccl==", "NCCL version ", pattern=r"(?:is using nccl==|NCCL version )(?P<version>\d+\.\d+\.\d+)")
LIBRARY_PATH: Final = sight("LD_LIBRARY_PATH=", "VLLM_NCCL_SO_PATH=", pattern=r"(?P<name>LD_LIBRARY_PATH|VLLM_NCCL_SO_PATH)=(?P<value>\S*nccl\S*)")
RAY_MISMATCH: Final = sight(
    "Version mismatch: The cluster was started with",
    "was started with:",
    pattern=r"Version mismatch: The cluster was started with|(?P<node>This process on node (?P<ip>[\d.]+)) was started with",
)
RAY_VERSIONS: Final = sight("    Ray: ", "    Python: ", "Ray: ", "Python: ", pattern=r"^\s*(?P<what>Ray|Python): (?P<version>\d[\w.]*)")
NODE_VERSION: Final = sight(
    "vLLM API server version",
    "vllm==",
    "torch==",
    "LLM engine (v",
    "vLLM version",
    pattern=r"(?P<what>vLLM API server version|vllm==|torch==|LLM engine \(v|vLLM version:?) ?v?(?P<version>\d[\w.+]*)",
)
NOT_ALIKE: Final = sight(
    "AttributeError",
    "TypeError",
    "ModuleNotFoundError",
    "ImportError",
    "npickl",
    "Pickl",
    "PicklingError",
    "RayTaskError",
    pattern=r"(?:^|[ :.])(?:AttributeError|TypeError|ModuleNotFoundError|ImportError|UnpicklingError|PicklingError)(?:\([\w.]+\))?:.*|RayTaskError\((?:AttributeError|TypeError|ModuleNotFoundError|ImportError|UnpicklingError)\).*",
)
NO_PATH: Final = sight(
    "is not a local folder",
    "No such file or directory",
    "does not appear to have a file named",
    "Repo id must be",
    "Repo id must use",
    "not a valid model identifier",
    "Incorrect path_or_model_id",
    "Can't load the configuration",
    pattern=r"(?:OSError|FileNotFoundError|HFValidationError|ValueError|RepositoryNotFoundError).*?(?<![\w.:/])(?P<path>/[\w./\-]{2,})"
    r".*?(?:is not a local folder|does not appear to have|valid model identifier|\.|$)"
    r"|No such file or directory: [\"'](?P<file>/[^\"']+)[\"']",
)
FROM_NODE: Final = sight("RayTaskError", pattern=r"RayTaskError\(\w+\).*?\bip=(?P<ip>[\d.]+)")
HEAD: Final = sight("Ray cluster at address", pattern=r"Ray cluster at address: (?P<address>\d[\d.]+)")
LOADS: Final = sight("Resolved architecture", "Starting to load model", "Loading weights took", "Loading safetensors checkpoint shards", "Model loading took")


def two_nccl_libraries(case: Case) -> Found | None:
    stated = case.log.first(MISMATCHED)
    path = case.log.first(LIBRARY_PATH)
    set_by = (
        path["value"]
        if path
        else next(
            (case.context.text(f"env.{name}") for name in ("LD_LIBRARY_PATH", "VLLM_NCCL_SO_PATH") if "nccl" in case.context.text(f"env.{name}").lower()), ""
        )
    )
    wheel = case.context.text("versions.nccl_wheel") or case.context.text("versions.nccl")
    loaded = list(dict.fromkeys(hit["version"] for hit in case.log.hits(LOADED)))
    usage = case.log.first(INVALID_USAGE, MISSING_SYMBOL)
    if stated is not None:
        low, high = sorted((stated["old"], stated["new"]), key=_order)
        low, high = low.split("+")[0], high.split("+")[0]
    else:
        different = [version for version in (*loaded, wheel) if version]
        low, high = (min(different, key=_order), max(different, key=_order)) if different else ("", "")
        if usage is None or case.startup.ready or (low == high and not (set_by and "undefined symbol" in usage.line.text)):
            return None
    quotes = [hit.quote() for hit in (stated or usage, path) if hit is not None]
    if wheel and stated is None:
        quotes.append(case.context.quote("versions.nccl_wheel" if case.context.has("versions.nccl_wheel") else "versions.nccl", wheel))
    if path is None and set_by:
        quotes.append(_env_quote(case))
    where = Words(
        f" LD_LIBRARY_PATH puts one of its own first ({set_by})." if set_by else "", f"LD_LIBRARY_PATH 把另一份排在了前面（{set_by}）。" if set_by else ""
    )
    ranks = Words("", "")
    if stated is not None:
        ranks = Words(
            f"rank {stated['a']} has {stated['old']}, rank {stated['b']} has {stated['new']}",
            f"rank {stated['a']} 为 {stated['old']}，rank {stated['b']} 为 {stated['new']}",
        )
    elif low == high:
        ranks = Words("this torch needs functions that the loaded one lacks", "该 torch 需要的函数在所加载的版本中不存在")
    else:
        ranks = (
            Words(f"{low} is loaded, {high} belongs to this torch", f"加载了 {low}，而该 torch 配套的是 {high}")
            if wheel == high
            else Words(f"{low} and {high}", f"{low} 与 {high}")
        )
    mark = "undefined symbol" if usage is not None and "undefined symbol" in usage.line.text else "invalid usage"
    return Found(
        cause=Words(
            f"Two versions of NCCL meet in one group: {ranks.en}.{where.en} `{mark}` is how that mix shows; GPUs and network are not at fault.",
            f"同一进程组混用了两个 NCCL 版本：{ranks.zh}。{where.zh}`{mark}` 正是这种混用的表现，与 GPU 和网络无关。",
        ),
        evidence=quotes,
        fixes=_one_nccl(set_by, wheel or high),
        verify=Words(
            f"`vLLM is using nccl==` shows the same version ({wheel or high}) on every rank and node, and `Mismatched NCCL version` is gone",
            f"各 rank、各节点的 `vLLM is using nccl==` 显示相同版本（{wheel or high}），且不再出现 `Mismatched NCCL version`",
        ),
        confidence=STATED if stated is not None else 0.8,
        explains=("D12", "L10"),
    )


def _env_quote(case: Case) -> Quote:
    name = next(name for name in ("LD_LIBRARY_PATH", "VLLM_NCCL_SO_PATH") if "nccl" in case.context.text(f"env.{name}").lower())
    return case.context.quote(f"env.{name}", f"{name}={case.context.text(f'env.{name}')}")


def _one_nccl(set_by: str, wanted: str) -> list[Fix]:
    wheel = '$(python -c "import nvidia.nccl as n; print(list(n.__path__)[0])")/lib/libnccl.so.2'
    fixes = []
    if ":" in set_by or "lib" in set_by:
        kept = ":".join(part for part in set_by.split(":") if part and "nccl" not in part.lower())
        fixes.append(
            Fix(
                Words(
                    f"take the foreign NCCL out of the path, so that the one of torch{f' ({wanted})' if wanted else ''} is found, on every node",
                    f"从路径中去掉外来的 NCCL，使各节点都用 torch 自带的{f'（{wanted}）' if wanted else ''}",
                ),
                f"export LD_LIBRARY_PATH={kept}" if kept else "unset LD_LIBRARY_PATH",
            )
        )
    fixes.append(Fix(Words("name the library of torch for vLLM", "为 vLLM 指定 torch 自带的库"), f"export VLLM_NCCL_SO_PATH={wheel}"))
    if not set_by:
        package = f"nvidia-nccl-cu12=={wanted}" if wanted and int(wanted.split(".")[0]) == 2 else "nvidia-nccl-cu12"
        fixes.append(Fix(Words("install one version on all nodes", "在所有节点安装同一版本"), f"pip install {package}"))
    return fixes


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def versions_differ(case: Case) -> Found | None:
    ray = case.log.first(RAY_MISMATCH)
    if ray is not None and "Version mismatch" in ray.line.text:
        return _ray_versions(case, ray)
    found = _by_node(case)
    trouble = case.log.first(NOT_ALIKE)
    for what, versions in found.items():
        if len({version for _, version, _ in versions}) < 2:
            continue
        if trouble is None and (case.startup.ready or split_of(case).world == 1):
            return None
        shown = ", ".join(f"{node}: {version}" for node, version, _ in versions[:4])
        newest = max((version for _, version, _ in versions), key=_order)
        consequence = Words("", "")
        if trouble is not None:
            text = said(trouble, 120)
            consequence = Words(f" `{text}` comes of that.", f"`{text}` 由此而来。")
        return Found(
            cause=Words(
                f"The nodes run different versions of {what} ({shown}). Workers exchange pickled objects and collectives, which only equal versions understand.{consequence.en}",
                f"各节点的 {what} 版本不同（{shown}）。worker 之间交换序列化对象与集合通信，只有版本相同才能互通。{consequence.zh}",
            ),
            evidence=[quote for _, _, quote in versions[:3]] + ([trouble.quote()] if trouble else []),
            fixes=[
                Fix(
                    Words(f"one image or environment for all nodes, {what} {newest}", f"所有节点使用同一镜像或环境，{what} {newest}"),
                    f"pip install {what}=={newest}",
                )
            ],
            verify=Words(
                f"`python -c 'import {what}; print({what}.__version__)'` prints {newest} on every node",
                f"每个节点执行 `python -c 'import {what}; print({what}.__version__)'` 均输出 {newest}",
            ),
            confidence=0.9 if trouble else 0.75,
        )
    return None


def _by_node(case: Case) -> Mapping[str, list[tuple[str, str, Quote]]]:
    """package -> (node, version, evidence), one entry for each node."""
    found: dict[str, dict[str, tuple[str, str, Quote]]] = {}
    for hit in case.log.hits(NODE_VERSION):
        node = node_of(hit.line)
        if node:
            what = "torch" if hit["what"].startswith("torch") else "vllm"
            found.setdefault(what, {}).setdefault(node, (node, hit["version"], hit.quote()))
    for index, node_facts in enumerate(case.context.items("host.ray.nodes")):
        if not isinstance(node_facts, dict):
            continue
        own = node_facts.get("versions")
        facts = {**node_facts, **(own if isinstance(own, dict) else {})}
        for what in ("vllm", "torch", "ray", "python", "nccl"):
            if isinstance(facts.get(what), (str, float, int)):
                node = str(node_facts.get("ip", f"node {index}"))
                found.setdefault(what, {})[node] = (node, str(facts[what]), case.context.quote(f"host.ray.nodes.{index}", f"{node}: {what} {facts[what]}"))
    return {what: list(nodes.values()) for what, nodes in found.items()}


def _ray_versions(case: Case, first: Hit) -> Found:
    """Four lines: those of the cluster, then those of this process."""
    seen: dict[str, list[str]] = {}
    for hit in case.log.hits(RAY_VERSIONS):
        if hit.line.number > first.line.number and len(seen.setdefault(hit["what"], [])) < 2:
            seen[hit["what"]].append(hit["version"])
    different = [f"{what} {pair[0]} and {pair[1]}" for what, pair in seen.items() if len(pair) == 2 and pair[0] != pair[1]]
    different_zh = [f"{what} {pair[0]} 与 {pair[1]}" for what, pair in seen.items() if len(pair) == 2 and pair[0] != pair[1]]
    node = next((hit["ip"] for hit in case.log.hits(RAY_MISMATCH) if hit["ip"]), "")
    wanted = seen.get("Ray", [""])[0]
    wants_python = len(seen.get("Python", [])) == 2 and seen["Python"][0] != seen["Python"][1]
    fixes = [Fix(Words("start all nodes from one image", "所有节点使用同一镜像启动"), f"pip install ray=={wanted}" if wanted else "pip install --upgrade ray")]
    if wants_python:
        fixes.insert(
            0,
            Fix(
                Words(
                    f"the Python of the cluster ({seen['Python'][0]}) on this node as well: best the same image",
                    f"该节点也使用集群的 Python（{seen['Python'][0]}），最好使用同一镜像",
                ),
                f"uv venv --python {seen['Python'][0]}",
            ),
        )
    return Found(
        cause=Words(
            f"This node{f' ({node})' if node else ''} does not run what the Ray cluster was started with: {'; '.join(different) or 'the versions differ'}. Ray refuses to join them.",
            f"该节点{f'（{node}）' if node else ''}与 Ray 集群启动时的版本不同：{'；'.join(different_zh) or '版本不一致'}。Ray 拒绝其加入。",
        ),
        evidence=[first.quote(), *(hit.quote() for hit in case.log.hits(RAY_VERSIONS)[:4])],
        fixes=fixes,
        verify=Words("`ray status` lists this node after `ray start --address`", "执行 `ray start --address` 后，`ray status` 列出该节点"),
        confidence=STATED,
        explains=("D9",),
    )


def path_missing_on_a_node(case: Case) -> Found | None:
    """The same error from every node would be a wrong path; from one only, that node lacks it."""
    head = case.log.first(HEAD)
    for hit in case.log.hits(NO_PATH):
        path = hit["file"] or hit["path"].rstrip(".")
        node = node_of(hit.line)
        if not node:
            above = [each for each in case.log.hits(FROM_NODE) if each.line.number <= hit.line.number]
            node = above[-1]["ip"] if above else ""
        if not node or len(path) < 3 or "site-packages" in path:
            continue
        others = [load for load in case.log.hits(LOADS) if node_of(load.line) != node]
        if head is not None and head["address"] != node:
            source = head["address"]
        elif others and (other := next((n for load in others if (n := node_of(load.line))), "")):
            source = other
        elif others:
            source = ""
        else:
            continue
        failing = {node_of(each.line) for each in case.log.hits(NO_PATH) if node_of(each.line)}
        if len(failing) > 1:
            continue
        return _path_found(case, hit, path, node, source, others)
    return None


def _path_found(case: Case, hit: Hit, path: str, node: str, source: str, others: list[Hit]) -> Found:
    given = case.launch.model
    folder = path.rpartition("/")[0] if re.search(r"\.\w{2,12}$", path) else path
    model = given if given.startswith("/") and path.startswith(given) else folder
    fine = Words(f"; {source} has it" if source else "; the other ranks read it", f"，而 {source} 上有" if source else "，其他 rank 能读到")
    copy = f"rsync -a {model.rstrip('/')}/ {node}:{model.rstrip('/')}/"
    return Found(
        cause=Words(
            f"{path} is missing on {node} only{fine.en}. Every node reads the model from its own disk under the same path; the text about identifiers and hub comes of the missing folder.",
            f"{path} 仅在 {node} 上缺失{fine.zh}。每个节点都从自己的磁盘按同一路径读取模型；关于模型标识或 Hub 的文字只是目录缺失的结果。",
        ),
        evidence=[hit.quote(), *(each.quote() for each in others[:1])],
        fixes=[
            Fix(Words(f"copy the model to the same path on {node}", f"把模型复制到 {node} 的同一路径"), copy),
            Fix(Words("or mount one shared folder at this path on all nodes", "或在所有节点把共享目录挂载到该路径"), f"mount | grep {model}"),
        ],
        verify=Words(
            f"`ls {model}/config.json` on {node} prints the file, and every rank says `Loading weights took`",
            f"在 {node} 执行 `ls {model}/config.json` 能列出文件，且每个 rank 都打印 `Loading weights took`",
        ),
        confidence=0.9,
        explains=("L1", "D17", "L8"),
    )


RULES: Final = (
    Rule(
        id="D10",
        title=Words("Two versions of NCCL in one group", "同一进程组混用两个 NCCL 版本"),
        symptoms=Words("`Mismatched NCCL version`, `invalid usage`", "`Mismatched NCCL version`、`invalid usage`"),
        why=Words("LD_LIBRARY_PATH or another node brings another libnccl", "LD_LIBRARY_PATH 或其他节点带来了另一个 libnccl"),
        needs=Words("NCCL's version of each rank, LD_LIBRARY_PATH", "各 rank 的 NCCL 版本、LD_LIBRARY_PATH"),
        remedy=Words("one version", "统一版本"),
        check=Words("`vLLM is using nccl==` is equal everywhere", "各处 `vLLM is using nccl==` 一致"),
        judge=two_nccl_libraries,
        sees=(MISMATCHED, INVALID_USAGE, MISSING_SYMBOL, LOADED, LIBRARY_PATH),
    ),
    Rule(
        id="D12",
        title=Words("Versions differ between nodes", "节点之间版本不一致"),
        symptoms=Words(
            "`Version mismatch: The cluster was started with`, or versions that differ per node",
            "`Version mismatch: The cluster was started with`，或各节点版本不同",
        ),
        why=Words("objects and protocols between workers fit equal versions only", "worker 之间的对象与协议只适用于相同版本"),
        needs=Words("versions of Python, Ray, torch and vLLM on each node", "各节点 Python、Ray、torch、vLLM 的版本"),
        remedy=Words("one image for all nodes", "所有节点用同一镜像"),
        check=Words("each node prints the same versions", "各节点输出相同版本"),
        judge=versions_differ,
        sees=(RAY_MISMATCH, RAY_VERSIONS, NODE_VERSION, NOT_ALIKE),
    ),
    Rule(
        id="D13",
        title=Words("The model path is missing on another node", "另一节点缺少模型路径"),
        symptoms=Words("an OSError about the model from one node only", "只有一个节点报模型的 OSError"),
        why=Words("each node reads the model from its own disk", "每个节点从自己的磁盘读取模型"),
        needs=Words("the folder on each node", "各节点上的该目录"),
        remedy=Words("the same path everywhere", "各节点使用相同路径"),
        check=Words("every rank loads", "每个 rank 都完成加载"),
        judge=path_missing_on_a_node,
        sees=(NO_PATH, FROM_NODE, HEAD, LOADS),
    ),
)
