"""L12 and L13: a start that is only slow: reading the weights, or compiling."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.rules.loading.model_folder import model_directory, model_files
from headway.doctor.rules.loading.outcome import of_the_model_runtime
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

SHARDS: Final = sight(
    "checkpoint shards:",
    "loading shards:",
    pattern=r"(?:checkpoint|loading) shards: +(?P<percent>\d+)% Completed \| (?P<done>\d+)/(?P<of>\d+) \[(?P<clock>[\d:]+)<(?P<left>[\d:?]+), +(?P<rate>[\d.?]+)(?P<unit>s/it|it/s)",
    series=True,
)
TOOK: Final = sight("Loading weights took", pattern=r"Loading weights took (?P<seconds>[\d.]+) seconds")
COMPILED: Final = sight(
    "torch.compile takes",
    "Compiling a graph for",
    pattern=r"(?:torch\.compile takes|Compiling a graph for .* takes) (?P<seconds>[\d.]+) ?s",
)
CACHE_FOLDER: Final = sight(
    "Using cache directory:",
    pattern=r"Using cache directory: (?P<path>\S+?)(?:/torch_compile_cache\S*)? for vLLM's torch.compile",
)

_NETWORK: Final = (
    "nfs",
    "cifs",
    "smb",
    "fuse",
    "ceph",
    "lustre",
    "gpfs",
    "glusterfs",
    "9p",
    "virtiofs",
    "s3",
    "gcs",
    "efs",
    "beegfs",
    "afs",
    "sshfs",
    "juicefs",
)
_SLOW_SHARD: Final = 25.0  # seconds; a shard has about 5 GB, which a local disk reads in under ten
_SLOW_RATE: Final = 120.0  # MB/s, below a single spinning disk
_LONG_LOAD: Final = 240.0  # seconds in all
_LONG_FIRST: Final = 45  # seconds; the first shard alone counts when it took so long
_LONG_COMPILE: Final = 120.0


@dataclass(frozen=True, slots=True)
class _Mount:
    path: str
    kind: str
    free_gib: float
    place: str  # in the context

    @property
    def remote(self) -> bool:
        return self.kind.lower().startswith(_NETWORK)


def weights_read_slowly(case: Case) -> Found | None:
    """Bytes times readers by seconds, against what a local disk gives."""
    pace = _pace(case)
    if pace is None or of_the_model_runtime(case):
        return None
    per_shard, shards, shown, finished = pace
    total = _gib(case)
    rate = total * 1073.741824 / (per_shard * shards) if total else None
    if per_shard * shards < _LONG_LOAD or not (per_shard >= _SLOW_SHARD or (rate is not None and rate < _SLOW_RATE)):
        return None
    mounts = _mounts(case)
    place = model_directory(case) or case.context.text("env.HF_HUB_CACHE") or case.context.text("env.HF_HOME")
    under = max(
        (mount for mount in mounts if place.startswith(mount.path.rstrip("/") + "/") or place == mount.path),
        key=lambda mount: len(mount.path),
        default=None,
    )
    readers = int(case.launch.number("tensor_parallel_size") or 1)
    rotational = case.context.get("host.io.rotational") is True or (
        under is not None and case.context.get(f"{under.place}.rotational") is True
    )
    measured = case.context.number("host.io.read_mb_s") or case.context.number("host.io.mb_s")
    evidence: list[Quote] = quoted(shown)
    if under is not None:
        evidence.append(case.context.quote(under.place))
    if total and case.context.has("model.weights_gib"):
        evidence.append(case.context.quote("model.weights_gib"))
    sum_en = f"{per_shard:.1f} s per shard, {shards} shards = {per_shard * shards / 60:.0f} min"
    sum_zh = f"每个分片 {per_shard:.1f} s，共 {shards} 个，约 {per_shard * shards / 60:.0f} 分钟"
    if rate and total:
        sum_en += f"; {total:.1f} GiB in that time are {rate:.0f} MB/s" + (
            f" per reader, and {readers} ranks read the same files" if readers > 1 else ""
        )
        sum_zh += f"；这段时间读 {total:.1f} GiB，即{'每个进程 ' if readers > 1 else ' '}{rate:.0f} MB/s" + (
            f"，且 {readers} 个进程读取同样的文件" if readers > 1 else ""
        )
    where = (
        Words(
            f"the weights lie on a network file system ({under.kind} at {under.path})",
            f"权重位于网络文件系统（{under.path} 上的 {under.kind}）",
        )
        if under and under.remote
        else Words("the weights lie on a rotating disk", "权重位于机械硬盘")
        if rotational
        else Words(f"the weights lie on {under.kind} at {under.path}", f"权重位于 {under.path}（{under.kind}）")
        if under
        else Words("the storage under the weights gives no more", "存放权重的存储只能达到这个速度")
    )
    nothing_wrong = Words(
        "Nothing is broken" + (f" (the disk was measured at {measured:.0f} MB/s)" if measured else ""),
        "没有出错" + (f"（实测磁盘 {measured:.0f} MB/s）" if measured else ""),
    )
    done = Words("the load was slow" if finished else "the load is only slow", "加载很慢" if finished else "加载只是慢")
    return Found(
        cause=Words(
            f"{nothing_wrong.en}, {done.en}: {sum_en}; {where.en}.",
            f"{nothing_wrong.zh}，{done.zh}：{sum_zh}；{where.zh}。",
        ),
        evidence=evidence,
        fixes=_faster(case, mounts, under, total),
        verify=Words(
            f"`dd if=$(ls {place or '.'}/*.safetensors | head -1) of=/dev/null bs=16M iflag=direct` prints more MB/s than {f'{rate:.0f}' if rate else 'now'}, and `Loading weights took` shrinks",
            f"`dd if=$(ls {place or '.'}/*.safetensors | head -1) of=/dev/null bs=16M iflag=direct` 的 MB/s 高于{f' {rate:.0f}' if rate else '现在'}，且 `Loading weights took` 变小",
        ),
        confidence=0.9 if (under and (under.remote or rotational)) or rotational else 0.75,
        weight="degraded",
    )


def _pace(case: Case) -> tuple[float, int, Hit, bool] | None:
    """Seconds per shard, number of shards, the line, whether it was finished."""
    took = case.log.last(TOOK)
    progress = [
        hit
        for hit in case.log.hits(SHARDS)
        if int(hit["done"]) >= 2 or (int(hit["done"]) == 1 and _seconds(hit["clock"]) >= _LONG_FIRST)
    ]
    if progress:
        last = max(progress, key=lambda hit: (int(hit["of"]), int(hit["done"])))
        elapsed = _seconds(last["clock"])
        if elapsed:
            return elapsed / int(last["done"]), int(last["of"]), last, took is not None
    if took is not None:
        shards = max((int(hit["of"]) for hit in case.log.hits(SHARDS)), default=1)
        return took.number("seconds") / shards, shards, took, True
    return None


def _seconds(clock: str) -> int:
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part or 0)
    return total


def _gib(case: Case) -> float | None:
    if (given := case.context.number("model.weights_gib")) is not None:
        return given
    sizes = [file.nbytes for file in model_files(case) if file.is_weights and file.nbytes]
    if sizes:
        return sum(sizes) / 2**30
    loaded = case.memory.weights
    ranks = (case.launch.number("tensor_parallel_size") or 1) * (case.launch.number("pipeline_parallel_size") or 1)
    return loaded.value * ranks if loaded else None


def _mounts(case: Case) -> list[_Mount]:
    found = []
    for index, member in enumerate(case.context.items("host.mounts")):
        if isinstance(member, Mapping) and member.get("path"):
            free = case.context.number(f"host.mounts.{index}.free_gib")
            kind = str(member.get("type") or member.get("fstype") or "")
            found.append(_Mount(str(member["path"]), kind, free or 0.0, f"host.mounts.{index}"))
    return found


def _faster(case: Case, mounts: list[_Mount], under: _Mount | None, total: float | None) -> list[Fix]:
    source = model_directory(case)
    room = [
        mount
        for mount in mounts
        if not mount.remote
        and mount is not under
        and mount.kind not in ("tmpfs", "proc", "sysfs", "devtmpfs")
        and mount.free_gib > (total or 0)
    ]
    fixes = []
    if room and source:
        best = max(room, key=lambda mount: mount.free_gib)
        target = f"{best.path.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}"
        fixes.append(
            Fix(
                Words(
                    f"copy the weights to the local disk {best.path} ({best.free_gib:.0f} GiB free) once and serve from there",
                    f"把权重一次性复制到本地磁盘 {best.path}（剩余 {best.free_gib:.0f} GiB），从那里启动",
                ),
                f"rsync -a {source.rstrip('/')}/ {target}/",
            )
        )
    else:
        fixes.append(
            Fix(
                Words(
                    "copy the weights to a local SSD once and serve from there",
                    "把权重一次性复制到本地 SSD，从那里启动",
                ),
                f"rsync -a {source.rstrip('/')}/ /var/lib/models/{source.rstrip('/').rsplit('/', 1)[-1]}/"
                if source
                else None,
            )
        )
    fixes.append(
        Fix(
            Words(
                "or read every file sequentially ahead, instead of page by page",
                "或改为顺序预读整个文件，而不是按页读取",
            ),
            "--safetensors-load-strategy eager" if under and under.remote else "--safetensors-load-strategy prefetch",
        )
    )
    return fixes


def compiled_slowly(case: Case) -> Found | None:
    """Compilation that took minutes; it repeats at each start whose cache is not kept."""
    hits = [hit for hit in case.log.hits(COMPILED) if hit["seconds"]]
    totals = [hit for hit in hits if "torch.compile takes" in hit.line.text]
    slowest = max(totals or hits, key=lambda hit: hit.number("seconds"), default=None)
    if slowest is None or slowest.number("seconds") < _LONG_COMPILE:
        return None
    seconds = slowest.number("seconds")
    folder = case.log.first(CACHE_FOLDER)
    place = folder["path"] if folder else "/root/.cache/vllm"
    # what the default list of graph sizes costs grows with the largest batch
    batch = case.launch.number("max_num_seqs")
    sizes = [2**power for power in range(int(math.log2(batch)) + 1)] if batch and batch >= 1 else [1, 2, 4, 8, 16, 32]
    listed = ",".join(str(size) for size in sizes[:8])
    return Found(
        cause=Words(
            f"torch.compile took {seconds:.0f} s ({seconds / 60:.1f} min). It is paid again at every start whose compile cache ({place}) is not kept, and once more for each graph size.",
            f"torch.compile 用了 {seconds:.0f} s（{seconds / 60:.1f} 分钟）。如果不保留编译缓存（{place}），每次启动都要重来一遍，且每个图尺寸各一次。",
        ),
        evidence=quoted(slowest, folder),
        fixes=[
            Fix(
                Words(
                    "keep the compile cache on a volume, so that only the first start pays",
                    "把编译缓存放在卷上，只有首次启动需要编译",
                ),
                f"-v vllm-cache:{place}"
                if re.match(r"/(?:root|home|app)/", place)
                else f"export VLLM_CACHE_ROOT={place}",
            ),
            Fix(
                Words("compile fewer sizes", "减少编译的尺寸"),
                f"--compilation-config '{{\"cudagraph_capture_sizes\": [{listed}]}}'",
            ),
        ],
        verify=Words(
            "at the second start `torch.compile takes` shows a few seconds",
            "第二次启动时 `torch.compile takes` 只有几秒",
        ),
        confidence=0.85,
        weight="degraded",
    )


RULES: Final = (
    Rule(
        id="L12",
        title=Words("The weights are read slowly", "权重读取缓慢"),
        symptoms=Words("tens of seconds per shard, no error", "每个分片几十秒，没有报错"),
        why=Words(
            "a network file system or a rotating disk, read by several ranks at once",
            "网络文件系统或机械硬盘，且多个进程同时读取",
        ),
        needs=Words("file system type, MB/s, readers of the same file", "文件系统类型、MB/s、同一文件的读取者数量"),
        remedy=Words(
            "a local SSD, --safetensors-load-strategy prefetch or eager, sharded_state",
            "本地 SSD、--safetensors-load-strategy prefetch 或 eager、sharded_state",
        ),
        check=Words("the MB/s of a direct read of one file", "直接读取一个文件的 MB/s"),
        judge=weights_read_slowly,
        sees=(SHARDS, TOOK),
    ),
    Rule(
        id="L13",
        title=Words("Compilation takes minutes", "编译耗时数分钟"),
        symptoms=Words("`torch.compile takes` hundreds of seconds", "`torch.compile takes` 数百秒"),
        why=Words(
            "the compile cache is not kept between starts, or many sizes are compiled",
            "编译缓存没有跨启动保留，或编译的尺寸过多",
        ),
        needs=Words("seconds and the cache folder", "秒数与缓存目录"),
        remedy=Words("keep the cache on a volume, fewer sizes", "把缓存放在卷上，减少尺寸"),
        check=Words("the second start", "第二次启动"),
        judge=compiled_slowly,
        sees=(COMPILED, CACHE_FOLDER),
    ),
)
