"""A ready model whose self-check proves nothing, because the recorded kernels were not used (R26)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.masking import mask
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import deployment
from headway.doctor.rules.runtime.statement import READY, called
from headway.doctor.words import Words

WITHOUT: Final = sight(
    "runs without its recorded kernel choices", pattern=r"(?:model )?(?P<model>[\w./@\-]{1,120}) runs without its recorded kernel choices: (?P<why>.*)"
)
NOT_APPLIED: Final = sight("kernel choices not applied", pattern=r"kernel choices not applied: ?(?P<why>[^\"}]*)")
UNVERIFIED: Final = sight("unverified", pattern=r"golden: unverified|status[\"']?: ?[\"']unverified")
_RECORDED: Final = re.compile(r"recorded with FLA (?P<wanted>\d[\w.]*\w)(?:, not (?P<found>\d[\w.]*\w))?")
_FLA: Final = "0.5.2"


def recorded_kernels_unused(case: Case) -> Found | None:
    hit = case.log.first(WITHOUT) or case.log.first(NOT_APPLIED)
    if hit is None:
        return _plainly_unverified(case)
    why = mask(hit["why"].strip())
    name = hit["model"] if "model" in hit.match.re.groupindex else ""
    place = deployment(case, name)
    versions = _RECORDED.search(why)
    wanted = versions["wanted"] if versions else _FLA
    install = Fix(Words(f"install the recorded version of FLA ({wanted})", f"安装记录所用的 FLA 版本（{wanted}）"), f"pip install fla-core=={wanted}")
    image = Fix(Words("or use the router's ROCm image, which has it", "或使用自带它的路由器 ROCm 镜像"), "vllm-sr serve --platform rocm")
    if "failed to import" in why:
        fixes = [
            Fix(Words("repair the installation of FLA; this prints its error", "修复 FLA 安装；此命令会显示其错误"), 'python -c "import fla"'),
            Fix(Words("installing it anew is often enough", "重新安装往往即可"), f"pip install --force-reinstall fla-core=={wanted}"),
            image,
        ]
    else:
        fixes = [install, image]
    found = f"FLA {versions['found']} is here" if versions and versions["found"] else why[:160]
    found_zh = f"此处为 FLA {versions['found']}" if versions and versions["found"] else why[:160]
    shown = called(name or place.artifact, "The model", "该模型")
    return Found(
        cause=Words(
            f"{shown.en} serves, but its self-check is unverified: the kernel choices it was recorded with (FLA {wanted}) were not applied ({found}). Its answers may differ from the released ones."
            " A kernel cache kept over restarts does not replace them.",
            f"{shown.zh} 能够服务，但自检为 unverified：未能应用录制时的内核选择（FLA {wanted}；{found_zh}）。其回答可能与发布版不同。跨重启保留的内核缓存不能代替它们。",
        ),
        evidence=[hit.quote()],
        fixes=fixes,
        verify=Words(
            "after a restart `curl -s localhost:8100/v1/models` shows golden `matched`", "重启后 `curl -s localhost:8100/v1/models` 中 golden 为 `matched`"
        ),
        confidence=STATED,
        weight="degraded",
    )


def _plainly_unverified(case: Case) -> Found | None:
    """No reason and no reference: nothing to do, which is worth saying."""
    hit = case.log.first(UNVERIFIED)
    if hit is None:
        return None
    return Found(
        cause=Words(
            "The self-check is unverified without a reason: there are no recorded answers for this model on this kind of device. Form and repeatability were checked; there is nothing to repair.",
            "自检为 unverified 且没有原因：该模型在此类设备上没有录制的回答。格式与可重复性已检查，无需处理。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words("nothing to repair; to have a reference, record one on a machine that you trust", "无需修复；若需要参照，可在可信机器上录制"),
                "vllm-srun golden --help",
            )
        ],
        verify=Words("`curl -s localhost:8100/v1/models` shows an empty golden.reference", "`curl -s localhost:8100/v1/models` 中 golden.reference 为空"),
        confidence=0.3,
        weight="remark",
    )


RULES: Final = (
    Rule(
        id="R26",
        title=Words("Recorded kernels are not used", "未使用录制的内核"),
        symptoms=Words("golden `unverified`, `kernel choices not applied`", "golden `unverified`、`kernel choices not applied`"),
        why=Words("recorded kernels could not be used; it serves, answers may differ", "无法使用录制的内核；能服务，但回答可能不同"),
        needs=Words("the rest of the reason", "原因的其余部分"),
        remedy=Words("fla-core==0.5.2 or the ROCm image", "fla-core==0.5.2 或 ROCm 镜像"),
        check=Words("golden `matched`", "golden 为 `matched`"),
        judge=recorded_kernels_unused,
        sees=(WITHOUT, NOT_APPLIED, UNVERIFIED, READY, *DEPLOYMENTS),
    ),
)
