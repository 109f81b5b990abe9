"""L11 and L15: the card is too old or too new for the build, or too old for the number format."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

NO_IMAGE: Final = sight(
    "no kernel image is available",
    "invalid device function",
    "has no device code compatible with CUDA arch",
    pattern=r"no kernel image is available|(?:HIP|CUDA)?.*invalid device function|has no device code compatible with CUDA arch (?P<arch>\d+)",
)
NOT_COMPATIBLE: Final = sight(
    "is not compatible with the current PyTorch installation",
    "CUDA capability sm_",
    pattern=r"(?P<name>[\w\-][\w \-]{1,60}?) with CUDA capability sm_(?P<arch>\d+\w?) is not compatible",
)
SUPPORTED: Final = sight(
    "PyTorch install supports CUDA capabilities",
    "was compiled for:",
    pattern=r"(?:supports CUDA capabilities|was compiled for:) (?P<list>[\w ,.]+)",
)
LLAMA_DEVICE: Final = sight(
    ", compute capability ", pattern=r"Device \d+: (?P<name>.+?), compute capability (?P<arch>\d+\.\d)"
)
ASSEMBLER: Final = sight(
    "is not defined for option 'gpu-name'",
    pattern=r"Value '(?:sm_)?(?P<arch>\w+)' is not defined for option 'gpu-name'",
)

# first CUDA release of wheels with kernels for a capability (major, minor); newer cards want the newest
_WHEELS: Final[dict[tuple[int, int], str]] = {
    (8, 9): "cu118",
    (9, 0): "cu118",
    (10, 0): "cu128",
    (12, 0): "cu128",
    (10, 3): "cu129",
    (12, 1): "cu129",
    (11, 0): "cu130",
}
_NEWEST_WHEEL: Final = "cu130"
_OLDEST_ENGINE: Final = (7, 0)  # the engine's own kernels are not written for less


def build_lacks_the_card(case: Case) -> Found | None:
    """The card's compute capability is compared with the build's list; the line in the traceback is accidental."""
    hit = case.log.first(NO_IMAGE, ASSEMBLER)
    if hit is None or of_the_model_runtime(case):
        return None
    card, card_quotes = _card(case)
    built, built_quotes = _built(case)
    name = case.context.text("host.gpus.0.name") or next(
        (found["name"].strip() for found in case.log.hits(NOT_COMPATIBLE)), ""
    )
    torch = case.context.text("versions.torch")
    accidental = Words(
        " The operation named in the traceback is accidental, because kernels run asynchronously; the driver is not the point.",
        "回溯中的算子只是偶然出现，因为内核是异步执行的；问题也不在驱动。",
    )
    shown_list = ", ".join(_dotted(capability) for capability in built)
    with_torch = f"torch {torch}" if torch else "this torch build"
    with_torch_zh = f"torch {torch}" if torch else "当前 torch 构建"
    title: Words | None = None
    if card and built and card < min(built):
        title = Words("The card is older than the build", "显卡比构建版本支持的更旧")
        cause = Words(
            f"{name or 'The card'} has compute capability {_dotted(card)}, and {with_torch} holds kernels for {shown_list} only: the card is older than the oldest of them ({_dotted(min(built))}).{accidental.en}",
            f"{name or '显卡'} 的计算能力是 {_dotted(card)}，而 {with_torch_zh} 只包含 {shown_list} 的内核：显卡比其中最旧的（{_dotted(min(built))}）还旧。{accidental.zh}",
        )
        fixes = [
            Fix(
                Words("use an older wheel or image whose list holds the card", "使用列表中包含该卡的旧版 wheel 或镜像"),
                'pip install "torch<2.8" --index-url https://download.pytorch.org/whl/cu126',
            ),
            Fix(
                Words(
                    "or build torch and the extensions from source for this card", "或针对该卡从源码构建 torch 与扩展"
                ),
                f'TORCH_CUDA_ARCH_LIST="{_dotted(card)}" pip install --no-build-isolation --no-binary :all: .',
            ),
            _llama_for(card),
        ]
        if card < _OLDEST_ENGINE:
            fixes = [fixes[2], fixes[0], fixes[1]]
    elif card and built and card > max(built):
        wheel = "cu118" if card < (8, 9) else _WHEELS.get(card, _NEWEST_WHEEL)
        title = Words("The card is newer than the build", "显卡比构建版本支持的更新")
        cause = Words(
            f"{name or 'The card'} has compute capability {_dotted(card)}, and {with_torch} holds kernels for {shown_list} only: the card is newer than the newest of them ({_dotted(max(built))}).{accidental.en}",
            f"{name or '显卡'} 的计算能力是 {_dotted(card)}，而 {with_torch_zh} 只包含 {shown_list} 的内核：显卡比其中最新的（{_dotted(max(built))}）还新。{accidental.zh}",
        )
        fixes = [
            Fix(
                Words(
                    f"install a newer wheel built for CUDA {wheel[2:4]}.{wheel[4]} or later, or a newer image",
                    f"安装面向 CUDA {wheel[2:4]}.{wheel[4]} 或更高版本的新 wheel，或更新的镜像",
                ),
                f"pip install -U torch --index-url https://download.pytorch.org/whl/{wheel} && pip install -U vllm",
            ),
            Fix(
                Words("or build from source for this card", "或针对该卡从源码构建"),
                f'TORCH_CUDA_ARCH_LIST="{_dotted(card)}" pip install --no-build-isolation --no-cache-dir --no-binary vllm vllm',
            ),
        ]
    elif card and built:
        title = Words("An extension was built for fewer cards than torch", "某个扩展支持的显卡少于 torch")
        cause = Words(
            f"{name or 'The card'} has compute capability {_dotted(card)}, which {with_torch} supports ({shown_list}); so one compiled extension was built for fewer architectures than torch itself.{accidental.en}",
            f"{name or '显卡'} 的计算能力是 {_dotted(card)}，{with_torch_zh} 是支持的（{shown_list}）；说明某个编译扩展所支持的架构少于 torch 本身。{accidental.zh}",
        )
        fixes = [
            Fix(
                Words(
                    "install a build of the extension for this card, or build it from source",
                    "安装支持该卡的扩展构建，或从源码构建",
                ),
                f'TORCH_CUDA_ARCH_LIST="{_dotted(card)}" pip install --no-build-isolation --no-cache-dir --no-binary vllm vllm',
            ),
            Fix(
                Words(
                    "or choose another attention backend, if the extension is one", "若该扩展是注意力后端，则换用另一个"
                ),
                "--attention-backend TRITON_ATTN",
            ),
        ]
    else:
        known = Words(
            f" The card has compute capability {_dotted(card)}." if card else "",
            f"显卡计算能力为 {_dotted(card)}。" if card else "",
        )
        cause = Words(
            f"The installed build holds no kernels for the compute capability of this card: it is older or newer than the list of the build.{known.en}{accidental.en}",
            f"已安装的构建不包含该显卡计算能力对应的内核：显卡比构建列表更旧或更新。{known.zh}{accidental.zh}",
        )
        fixes = [
            Fix(
                Words("compare both sides: the card must be in the list", "对照两边：显卡必须在列表中"),
                'python -c "import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())"',
            ),
            Fix(
                Words(
                    "newer card: a newer wheel or image; older card: an older wheel, a build from source, the CPU or llama.cpp",
                    "显卡更新：用更新的 wheel 或镜像；显卡更旧：用旧版 wheel、源码构建、CPU 或 llama.cpp",
                )
            ),
        ]
        if card and case.launch.program == "llama.cpp":
            fixes = [_llama_for(card)]
    return Found(
        cause=cause,
        evidence=[*quoted(hit, case.log.first(NOT_COMPATIBLE)), *card_quotes, *built_quotes],
        fixes=fixes,
        verify=Words(
            "`python -c \"import torch; x = torch.ones(64, 64, device='cuda'); print((x @ x).sum())\"` prints 262144",
            "`python -c \"import torch; x = torch.ones(64, 64, device='cuda'); print((x @ x).sum())\"` 输出 262144",
        ),
        confidence=STATED if card and built else 0.88,
        title=title,
    )


def _llama_for(card: tuple[int, int]) -> Fix:
    return Fix(
        Words(
            "or run on the CPU, or with llama.cpp built for this card", "或在 CPU 上运行，或用为该卡构建的 llama.cpp"
        ),
        f"cmake -B build -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES={card[0]}{card[1]} && cmake --build build -j",
    )


def _card(case: Case) -> tuple[tuple[int, int] | None, list[Quote]]:
    if capability := _capability(case.context.text("host.gpus.0.capability")):
        return capability, [case.context.quote("host.gpus.0.capability", f"capability: {_dotted(capability)}")]
    for hit in (
        *case.log.hits(NOT_COMPATIBLE),
        *case.log.hits(ASSEMBLER),
        *case.log.hits(NO_IMAGE),
        *case.log.hits(LLAMA_DEVICE),
    ):
        arch = hit.match.groupdict().get("arch") or ""
        if capability := _capability(arch[:-1] if len(arch) == 3 and hit.match.re is NO_IMAGE.pattern else arch):
            return capability, quoted(hit)
    return None, []


def _built(case: Case) -> tuple[list[tuple[int, int]], list[Quote]]:
    stated = case.context.get("versions.arch_list")
    texts = [str(member) for member in stated] if isinstance(stated, list) else re.split(r"[\s,]+", str(stated or ""))
    quotes = [case.context.quote("versions.arch_list")] if stated else []
    if not stated and (hit := case.log.first(SUPPORTED)):
        texts, quotes = re.split(r"[\s,]+", hit["list"]), quoted(hit)
        if hit.line.text[: hit.match.start("list")].endswith("compiled for: "):
            texts = [text[:-1] for text in texts]
    return sorted({capability for text in texts if (capability := _capability(text))}), quotes


def _capability(text: str) -> tuple[int, int] | None:
    """`6.1`, `sm_61`, `compute_120`, `sm_90a` as (major, minor)."""
    found = re.fullmatch(r"(?:sm_|compute_)?(?:(\d{1,2})\.(\d)|(\d{1,2})(\d))[a-z]?\.?", text.strip())
    return (int(found[1] or found[3]), int(found[2] or found[4])) if found else None


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


BFLOAT16: Final = sight(
    "Bfloat16 is only supported on GPUs",
    "bfloat16 is only supported on GPUs",
    pattern=r"[Bb]float16 is only supported on GPUs with compute capability of at least (?P<least>[\d.]+\d)(?:.*?Your (?P<name>.+?) GPU has compute capability (?P<own>\d+\.\d))?",
)
# trained in bfloat16 with activations that overflow in float16
_WIDE: Final = re.compile(r"(?i)gemma-?[23]|gemma2|gemma3|t5")


def card_has_no_bfloat16(case: Case) -> Found | None:
    hit = case.log.first(BFLOAT16)
    if hit is None or overcome(case, hit) or only_a_warning(hit):
        return None
    own = hit["own"] or case.context.text("host.gpus.0.capability")
    name = hit["name"] or case.context.text("host.gpus.0.name") or "the card"
    model = case.launch.model
    wide = bool(_WIDE.search(model))
    spoilt = Words(
        f" {model} overflows in half precision, so that float32 is the safe choice there." if wide else "",
        f"{model} 在半精度下会溢出，因此 float32 更安全。" if wide else "",
    )
    half = Fix(Words("run in half precision (float16)", "以半精度（float16）运行"), "--dtype half")
    full = Fix(
        Words(
            "or in float32 at twice the memory, if half gives NaN or nonsense",
            "若半精度出现 NaN 或乱码，则用 float32（内存翻倍）",
        ),
        "--dtype float32",
    )
    return Found(
        cause=Words(
            f"The model asks for bfloat16, which needs compute capability {hit['least'].rstrip('.')}; {name} has {own or 'less'}.{spoilt.en}",
            f"模型要求 bfloat16，需要计算能力 {hit['least'].rstrip('.')}；{name} 只有 {own or '更低'}。{spoilt.zh}",
        ),
        evidence=quoted(hit),
        fixes=[
            Fix(
                Words(
                    "run in float32, or try half (`--dtype half`) only with a check for NaN",
                    "以 float32 运行；若用半精度（`--dtype half`）需检查 NaN",
                ),
                "--dtype float32",
            ),
            half,
        ]
        if wide
        else [half, full],
        verify=Words(
            "the start passes with `dtype=torch.float16` in the engine's line, and a probe prompt gives sane text without NaN",
            "启动通过，引擎行显示 `dtype=torch.float16`，且测试提示词输出正常、没有 NaN",
        ),
        confidence=STATED,
    )


RULES: Final = (
    Rule(
        id="L11",
        title=Words("No kernels for this card in the build", "构建中没有该显卡的内核"),
        symptoms=Words(
            "`no kernel image is available for execution on the device`",
            "`no kernel image is available for execution on the device`",
        ),
        why=Words(
            "the compute capability of the card is not in the list of the build; the traceback line is accidental",
            "显卡的计算能力不在构建列表中；回溯所在行只是偶然",
        ),
        needs=Words(
            "capability of the card, `torch.cuda.get_arch_list()`", "显卡计算能力、`torch.cuda.get_arch_list()`"
        ),
        remedy=Words(
            "newer card: newer wheel; older card: older wheel, source build, CPU or llama.cpp",
            "显卡更新：更新 wheel；显卡更旧：旧版 wheel、源码构建、CPU 或 llama.cpp",
        ),
        check=Words("a matrix product in one line on the card", "在该卡上用一行代码做矩阵乘法"),
        judge=build_lacks_the_card,
        sees=(NO_IMAGE, NOT_COMPATIBLE, SUPPORTED, ASSEMBLER, LLAMA_DEVICE),
    ),
    Rule(
        id="L15",
        title=Words("The card has no bfloat16", "显卡不支持 bfloat16"),
        symptoms=Words(
            "`Bfloat16 is only supported on GPUs with compute capability of at least 8.0`",
            "`Bfloat16 is only supported on GPUs with compute capability of at least 8.0`",
        ),
        why=Words("the card is older than compute capability 8.0", "显卡计算能力低于 8.0"),
        needs=Words("the capability of the card", "显卡的计算能力"),
        remedy=Words("half precision: --dtype half", "使用半精度：--dtype half"),
        check=Words("the start passes, and no NaN", "启动通过，且没有 NaN"),
        judge=card_has_no_bfloat16,
        sees=(BFLOAT16,),
    ),
)
