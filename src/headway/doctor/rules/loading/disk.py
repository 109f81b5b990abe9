"""L14: a folder that has to be written to is full, may not be written, or is locked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

FULL: Final = sight(
    "o space left on device",
    "Disk quota exceeded",
    "Not enough free disk space",
    "[disk_full]",
    pattern=r"[Nn]o space left on device|Disk quota exceeded|Not enough free disk space"
    r"(?:.*?expected file size is: (?P<wanted>[\d.]+) MB.*?location (?P<place>\S+) only has (?P<free>[\d.]+) MB)?"
    r"|needs about (?P<amount>[\d.]+ ?\w+) in (?P<cache>\S+), (?P<left>[\d.]+ ?\w+) are free",
)
UNWRITABLE: Final = sight(
    "Permission denied",
    "Read-only file system",
    "cache folder (",
    "[cache_not_writable]",
    pattern=r"(?:Permission denied|Read-only file system)(?::? ['\"]?(?P<path>/[^'\"\s]+))?|write in your cache folder \((?P<folder>[^)]+)\)|cannot be stored in (?P<cache>\S+)",
)
LOCKED: Final = sight(
    "acquire lock on",
    "[cache_locked]",
    pattern=r"acquire lock on (?P<path>\S+\.lock)(?: \(elapsed: (?P<seconds>[\d.]+))?|^(?:.*?lock file (?P<file>\S+?)\))?.*\[cache_locked\]",
)
_SHARED_MEMORY: Final = re.compile(
    r"/dev/shm|posix_fallocate|shared memory|</torch_|psm_|nccl|NCCL|sem_|shmget|libgomp"
)
_CACHES: Final = re.compile(
    r"/\.?cache|huggingface|/hub|/models?|\.safetensors|\.incomplete|triton|torch_?inductor|vllm|headway|flashinfer|/tmp|\.gguf|/data|/root|/home|/mnt"
)


def folder_cannot_be_written(case: Case) -> Found | None:
    """Space, rights or a lock, of the folder that the message names. Shared memory is another rule's."""
    for judge, hits in (
        (_full, case.log.hits(FULL)),
        (_unwritable, case.log.hits(UNWRITABLE)),
        (_locked, case.log.hits(LOCKED)),
    ):
        for hit in hits:
            if (
                _SHARED_MEMORY.search(hit.line.text)
                or "usage_stats" in hit.line.text
                or overcome(case, hit)
                or of_the_model_runtime(case)
            ):
                continue
            if found := judge(case, hit):
                return found
    return None


def _full(case: Case, hit: Hit) -> Found | None:
    folder = hit["place"] or hit["cache"] or _path_in(hit) or _cache(case)
    quota = "quota" in hit.line.text
    mount, free, quote = _free(case, folder)
    wanted, left = hit["wanted"], hit["free"]
    if wanted:
        numbers = Words(
            f": {wanted} MB ({float(wanted) / 1e3:.1f} GB) are needed and {left} MB ({float(left) / 1e3:.1f} GB) are free",
            f"：需要 {wanted} MB（{float(wanted) / 1e3:.1f} GB），只剩 {left} MB（{float(left) / 1e3:.1f} GB）",
        )
    elif hit["amount"]:
        numbers = Words(
            f": {hit['amount']} are needed and {hit['left']} are free", f"：需要 {hit['amount']}，只剩 {hit['left']}"
        )
    elif free is not None:
        size = case.context.number("model.weights_gib")
        needs = Words(f", the model has {size:.1f} GiB" if size else "", f"，模型有 {size:.1f} GiB" if size else "")
        numbers = Words(f": {free:g} GiB are free on {mount}{needs.en}", f"：{mount} 只剩 {free:g} GiB{needs.zh}")
    else:
        numbers = Words("", "")
    full = Words(
        "The disk quota of this user is used up" if quota else "The disk is full",
        "该用户的磁盘配额已用完" if quota else "磁盘已满",
    )
    return Found(
        cause=Words(
            f"{full.en} where {folder or 'the cache'} lies{numbers.en}. This is the disk of that folder, not memory.",
            f"{full.zh}（{folder + ' ' if folder else '缓存'}所在位置）{numbers.zh}。问题是该目录所在磁盘，而不是内存。",
        ),
        evidence=quoted(hit) + quote,
        fixes=_room(case, folder, mount),
        verify=Words(
            f"`df -h {folder or '~/.cache/huggingface'}` shows more free space than the model has",
            f"`df -h {folder or '~/.cache/huggingface'}` 显示剩余空间大于模型大小",
        ),
        confidence=STATED,
        title=Words("No space left in a folder that is written to", "写入目录没有剩余空间"),
        explains=("L7", "L1"),
    )


def _unwritable(case: Case, hit: Hit) -> Found | None:
    folder = hit["path"] or hit["folder"] or hit["cache"]
    stated = bool(hit["folder"] or hit["cache"])
    if only_a_warning(hit) or not folder or not (stated or _CACHES.search(folder)):
        return None
    read_only = "Read-only" in hit.line.text
    top = folder.rstrip("'\"")
    directory = top.rsplit("/", 1)[0] if re.search(r"\.\w{2,12}$", top) else top
    root = re.match(r"(.*?/(?:\.cache|huggingface|hub)\b)", directory)
    owned = root[1] if root else directory
    homeless = re.match(r"/\.(?:cache|triton|config)", directory)
    why = (
        Words(f"{top} lies on a read-only file system", f"{top} 位于只读文件系统")
        if read_only
        else Words(f"The user of the server may not write to {top}", f"服务器的运行用户无权写入 {top}")
    )
    hint = Words(
        "; the home directory is / because the user has no entry in the image" if homeless else "",
        "；因为镜像中没有该用户条目，主目录是 /" if homeless else "",
    )
    return Found(
        cause=Words(
            f"{why.en}{hint.en}: a cache folder has to be writable for downloads and compiled kernels.",
            f"{why.zh}{hint.zh}：下载与编译内核都需要可写的缓存目录。",
        ),
        evidence=quoted(hit),
        fixes=[
            Fix(
                Words("move the cache to a folder that this user may write", "把缓存移到该用户可写的目录"),
                "export HF_HOME=/tmp/huggingface VLLM_CACHE_ROOT=/tmp/vllm TRITON_CACHE_DIR=/tmp/triton"
                if homeless or read_only
                else "export HF_HOME=$HOME/.cache/huggingface",
            ),
            *(
                []
                if read_only
                else [
                    Fix(
                        Words("or give the folder to the user of the server", "或把该目录的所有者改为服务器的运行用户"),
                        f'sudo chown -R "$(id -u):$(id -g)" {owned}',
                    )
                ]
            ),
        ],
        verify=Words(
            f"`touch {owned}/probe && rm {owned}/probe` succeeds as that user, or the new folder is used",
            f"以该用户执行 `touch {owned}/probe && rm {owned}/probe` 成功，或已使用新目录",
        ),
        confidence=0.92,
        title=Words("A cache folder may not be written to", "缓存目录不可写"),
    )


def _locked(case: Case, hit: Hit) -> Found | None:
    path = hit["path"] or hit["file"]
    waits = [float(other["seconds"]) for other in case.log.hits(LOCKED) if other["seconds"]]
    longest = max(waits, default=0.0)
    last = case.log.hits(LOCKED)[-1]
    if "[cache_locked]" not in hit.line.text and (case.log.count(LOCKED) < 3 and longest < 60):
        return None
    waited = Words(f" for {longest:.0f} s" if longest else "", f"已 {longest:.0f} s" if longest else "")
    return Found(
        cause=Words(
            f"The download waits{waited.en} for the lock {path}: another process holds it, or one that was killed left it behind.",
            f"下载一直在等待锁 {path}{waited.zh}：另一个进程持有它，或被杀死的进程把它留了下来。",
        ),
        evidence=quoted(hit, last),
        fixes=[
            Fix(
                Words("see who holds the lock and let it finish, or end it", "查看谁持有该锁，等待其完成或结束它"),
                f"fuser -v {path}",
            ),
            Fix(
                Words(
                    "if nobody holds it, delete the lock file that was left behind and start again",
                    "若无人持有，删除遗留的锁文件后重新启动",
                ),
                f"rm {path}",
            ),
        ],
        verify=Words(f"`fuser {path}` prints nothing and the download goes on", f"`fuser {path}` 没有输出，且下载继续"),
        confidence=0.88,
        title=Words("A lock in the cache is held", "缓存中的锁被占用"),
    )


def _path_in(hit: Hit) -> str:
    found = re.search(r"['\"](?P<path>/[^'\"]+)['\"]", hit.line.text) or re.search(
        r"(?:^|\s)(?P<path>/[\w./\-]{4,})", hit.line.text[hit.match.end() :] or hit.line.text
    )
    return found["path"].rsplit("/", 1)[0] if found else ""


def _cache(case: Case) -> str:
    return (
        case.launch.value("download_dir") or case.context.text("env.HF_HUB_CACHE") or case.context.text("env.HF_HOME")
    )


def _free(case: Case, folder: str) -> tuple[str, float | None, list[Quote]]:
    """The mount under the folder, its free GiB, its quote. Without a folder: the fullest mount."""
    best: tuple[int, str, float, str] | None = None
    for index, member in enumerate(case.context.items("host.mounts")):
        free = case.context.number(f"host.mounts.{index}.free_gib")
        if not isinstance(member, Mapping) or free is None or str(member.get("path")) == "/dev/shm":
            continue
        path = str(member.get("path", ""))
        over = folder == path or folder.startswith(path.rstrip("/") + "/")
        if (over or not folder) and (best is None or (len(path) > best[0] if folder else free < best[2])):
            best = (len(path), path, free, f"host.mounts.{index}")
    return (best[1], best[2], [case.context.quote(best[3])]) if best else ("", None, [])


_ROOMY_GIB: Final = 10  # less is not worth moving to


# caches that are no model's, by what their path holds: the variables that move them
_VARIABLES: Final = (
    (r"torch_?inductor|/triton", "TORCHINDUCTOR_CACHE_DIR={0}/torchinductor TRITON_CACHE_DIR={0}/triton"),
    (r"/vllm\b|torch_compile_cache", "VLLM_CACHE_ROOT={0}/vllm"),
    (r"flashinfer", "FLASHINFER_WORKSPACE_BASE={0}"),
    (r"^/tmp\b", "TMPDIR={0}"),
)


def _moved(folder: str, target: str) -> str:
    variables = next((given for held, given in _VARIABLES if re.search(held, folder)), "HF_HOME={0}/huggingface")
    return f"export {variables.format(target)}"


def _room(case: Case, folder: str, mount: str) -> list[Fix]:
    roomy = max(
        (
            (case.context.number(f"host.mounts.{index}.free_gib") or 0.0, str(member.get("path")))
            for index, member in enumerate(case.context.items("host.mounts"))
            if isinstance(member, Mapping) and str(member.get("path")) not in (mount, "/dev/shm")
        ),
        default=(0.0, ""),
    )
    fixes = []
    if roomy[0] > _ROOMY_GIB:
        fixes.append(
            Fix(
                Words(
                    f"move the cache to {roomy[1]}, where {roomy[0]:g} GiB are free",
                    f"把缓存移到 {roomy[1]}（剩余 {roomy[0]:g} GiB）",
                ),
                _moved(folder, roomy[1].rstrip("/")),
            )
        )
    fixes.append(
        Fix(
            Words(
                "free space: see what the folder holds and delete models that are not used",
                "释放空间：查看目录内容并删除不用的模型",
            ),
            f"du -xh --max-depth=2 {folder or '~/.cache/huggingface'} | sort -h | tail; hf cache ls",
        )
    )
    if roomy[0] <= _ROOMY_GIB:
        fixes.append(
            Fix(
                Words(
                    "or put the cache on a disk with room (HF_HOME, HF_HUB_CACHE or --download-dir): look for one",
                    "或把缓存放到有空间的磁盘（HF_HOME、HF_HUB_CACHE 或 --download-dir）：先查找",
                ),
                "df -h --output=avail,target | sort -h | tail -5",
            )
        )
    return fixes


RULES: Final = (
    Rule(
        id="L14",
        title=Words("A folder cannot be written to", "目录无法写入"),
        symptoms=Words(
            "no space for a file, a cache folder that is not writable, a lock left behind",
            "没有空间写文件、缓存目录不可写、遗留的锁",
        ),
        why=Words(
            "the disk or the quota is full, the folder belongs to another user, or a dead process left its lock",
            "磁盘或配额已满、目录属于其他用户，或死进程遗留了锁",
        ),
        needs=Words("free space and owner of every folder that is written to", "每个写入目录的剩余空间与所有者"),
        remedy=Words(
            "free or move the cache: HF_HOME, HF_HUB_CACHE, --download-dir",
            "释放或迁移缓存：HF_HOME、HF_HUB_CACHE、--download-dir",
        ),
        check=Words("free space of that folder", "该目录的剩余空间"),
        judge=folder_cannot_be_written,
        sees=(FULL, UNWRITABLE, LOCKED),
    ),
)
