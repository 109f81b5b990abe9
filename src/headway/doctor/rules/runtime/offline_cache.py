"""No network, and the files are not in the cache (R23)."""

from __future__ import annotations

from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import Deployment, deployment
from headway.doctor.rules.runtime.package_refused import cache_folder, repository
from headway.doctor.rules.runtime.statement import READY, RETRYING, called, stated
from headway.doctor.words import Words
from headway.runtime.loading.builtins import builtins

MISSING: Final = sight(
    "outgoing traffic has been disabled",
    "LocalEntryNotFoundError",
    "OfflineModeIsEnabled",
    "is not in the cache and",
    "offline mode is enabled",
    "cannot reach the hub",
    pattern=r"outgoing traffic has been disabled|LocalEntryNotFoundError|OfflineModeIsEnabled|is not in the cache and (?:nothing may be downloaded|offline)|offline mode is enabled",
)
NO_NETWORK: Final = sight(
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Failed to resolve 'huggingface.co'",
    pattern=r"^(?=.*(?:huggingface\.co|hf\.co|failed to load|retrying after))(?:.*)(?:Name or service not known|Temporary failure in name resolution|Network is unreachable|Failed to resolve)",
)
RUNTIME: Final = sight("vllm_srun.", "runtime_log", "runtime_process_started", "model runtime")


def not_in_the_cache(case: Case) -> Found | None:
    found = stated(case, MISSING) or stated(case, NO_NETWORK)
    if found is None or not (case.log.sees(RUNTIME) or case.launch.program in ("vllm-srun", "vllm-sr") or found.line is None):
        return None
    place = deployment(case, found.model)
    repo = repository(found, place) or place.artifact
    name = called(found.model or repo, "the model", "该模型")
    folder = cache_folder(case, place)
    revision = place.revision or next((each.revision for each in builtins() if each.repo == repo), "")
    command = f"hf download {repo or '$ARTIFACT'}{f' --revision {revision}' if revision else ''} --cache-dir {folder}"
    offline = case.context.text("env.HF_HUB_OFFLINE")
    switched = offline.lower() in ("1", "true", "yes", "on")
    why = (
        Words(f"HF_HUB_OFFLINE={offline} forbids downloads", f" HF_HUB_OFFLINE={offline} 禁止下载")
        if switched
        else Words("there is no way to the hub", "无法访问 Hub")
    )
    local = "/opt/models/" + (repo.rpartition("/")[2] or "model")
    return Found(
        cause=Words(
            f"{name.en}{f' ({repo})' if repo and repo != name.en else ''} is not in the runtime's cache ({folder}) and {why.en}; trying again cannot help, nor can a longer wait or a token.",
            f"{name.zh}{f'（{repo}）' if repo and repo != name.en else ''}不在运行时的缓存（{folder}）中，且{why.zh}；重试、延长等待或设置令牌都没有用。",
        ),
        evidence=[found.quote, *([case.context.quote("env.HF_HUB_OFFLINE", f"HF_HUB_OFFLINE={offline}")] if switched else [])],
        fixes=[
            Fix(
                Words(
                    "on a connected machine download into such a cache folder, then carry the folder over to the same place",
                    "在联网机器上下载到同样的缓存目录，再把目录拷贝到相同位置",
                ),
                command,
            ),
            Fix(
                Words("or copy the package itself and let the artifact be its absolute path", "或直接复制模型包，并把 artifact 设为其绝对路径"),
                _artifact(place, local),
            ),
        ],
        verify=Words(
            f"`ls -d {folder}/models--{(repo or 'owner/name').replace('/', '--')}/snapshots/*` prints the commit{f' {revision[:12]}…' if revision else ''}, and the model loads with HF_HUB_OFFLINE=1",
            f"`ls -d {folder}/models--{(repo or 'owner/name').replace('/', '--')}/snapshots/*` 输出 commit{f' {revision[:12]}…' if revision else ''}，且在 HF_HUB_OFFLINE=1 下能加载",
        ),
        confidence=STATED if switched or found.match.re is MISSING.pattern else 0.8,
        explains=("R11", "R13", "R24", "L1", "L2", "N19"),
    )


def _artifact(place: Deployment, path: str) -> str:
    return f"global.model_catalog.deployments.{place.name}.artifact: {path}" if place.managed and place.name else f"vllm-srun serve {path}"


RULES: Final = (
    Rule(
        id="R23",
        title=Words("Offline, and the model is not in the cache", "离线且缓存中没有该模型"),
        symptoms=Words("`outgoing traffic has been disabled`, or no network", "`outgoing traffic has been disabled`，或没有网络"),
        why=Words("files are missing in the runtime's cache", "运行时缓存缺少文件"),
        needs=Words("cache folder, HF_HUB_OFFLINE, artifact, revision", "缓存目录、HF_HUB_OFFLINE、artifact、revision"),
        remedy=Words("`hf download` on a connected machine and carry it over, or an absolute path", "在联网机器上 `hf download` 后拷贝，或用绝对路径"),
        check=Words("it loads offline", "离线能够加载"),
        judge=not_in_the_cache,
        sees=(MISSING, NO_NETWORK, RUNTIME, *DEPLOYMENTS, READY, RETRYING),
    ),
)
