"""A configuration that this router does not read: written for an older one (R16), or by an older command line (R17)."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Abstention, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

REMOVED: Final = sight(
    "removed model execution fields",
    "use_mmbert_32k",
    "use_nli",
    "polarity_guard",
    "vllm-sr config migrate",
    "provider candle",
    "provider: candle",
    "openvino",
    pattern=r"removed model execution fields|(?:unknown|removed|refused|not supported|was removed|no longer).*\b(?:candle|ort|openvino|precision|variant|use_mmbert_32k|use_nli|polarity_guard)\b"
    r"|\b(?:candle|ort|openvino|precision|variant|use_mmbert_32k|use_nli|polarity_guard)\b.*(?:unknown|removed|refused|not supported|was removed|no longer|config migrate)",
)
PROFILE: Final = sight("profile was removed", pattern=r"(?:\b(?P<path>[\w.\-\[\]]{1,160}\.profile): )?profile was removed")
CLI_VERSION: Final = sight("vllm-sr ", pattern=r"^vllm-sr (?:version )?v?(?P<version>\d+\.\d+[\w.+\-]*)(?: \((?P<channel>\w+)\))?")
IMAGE: Final = sight(
    "router image",
    "starting router",
    "outer image",
    pattern=r"(?:[Rr]outer image[: ]+(?:(?P<tag>:\w[\w.\-]*)|\S*?:?)?v?(?P<version>\d+\.\d+[\w.+\-]*)?|starting router.*?version=(?P<own>\d[\w.+\-]*))",
)
GIVEN: Final = sight("vllm-sr config ", "vllm-sr serve ", pattern=r"vllm-sr (?:config \w+|serve)\b.*--config[ =](?P<file>\S+)")
GENERATED: Final = sight("generated field", "wrote runtime config", pattern=r"wrote runtime config|generated field")
_FIELDS: Final = re.compile(r"\b(?:[\w\-]{1,60}(?:\[\d+\])?\.){1,12}[\w\-]{1,60}|\b(?:candle|ort|openvino|use_mmbert_32k|use_nli|polarity_guard)\b")
_LIST: Final = re.compile(r"removed model execution fields: (?P<fields>[\w.\[\]\-]{1,160}(?:, [\w.\[\]\-]{1,160}){0,40})")
_PROFILE_KEY: Final = re.compile(r"(?m)(?:^|[\s{,-])profile\s*:")


def fields_of_an_older_version(case: Case) -> Found | None:
    hit = case.log.first(REMOVED)
    profile = case.log.first(PROFILE)
    if hit is None and profile is not None and _own_file_has_profile(case):
        hit = profile
    if hit is None or (profile is not None and hit.line.number == profile.line.number and not _own_file_has_profile(case)):
        return None
    named = [
        name
        for name in dict.fromkeys(_FIELDS.findall(hit.line.text[max(0, hit.match.start() - 200) :]))
        if (not name.startswith(("vllm-sr", "config.")) and "." in name) or name in ("candle", "ort", "openvino", "use_mmbert_32k", "use_nli", "polarity_guard")
    ]
    if told := _LIST.search(hit.line.text):
        named = [*named, *(name for name in told["fields"].split(", ") if name not in named)]
    named = [name for name in named if not any(other != name and other.endswith(f".{name}") for other in named)]
    shown = ", ".join(named[:6]) + (f" and {len(named) - 6} more" if len(named) > 6 else "")
    shown_zh = ", ".join(named[:6]) + (f" 等 {len(named)} 项" if len(named) > 6 else "")
    file = next((name for name in case.context.members("files") if name.endswith((".yaml", ".yml"))), "config.yaml")
    typed = re.search(r"--config[ =](?P<file>\S+)", case.launch.command)
    given = case.log.first(GIVEN)
    file = typed["file"] if typed else given["file"] if given else file
    return Found(
        cause=Words(
            f"The configuration was written for an older version: {shown or 'it has fields that were removed'}. Models are run by the model runtime now, which takes none of these fields. The installation is in order.",
            f"该配置是为旧版本编写的：{shown_zh or '含有已移除的字段'}。现在由模型运行时运行模型，不再接受这些字段。安装本身没有问题。",
        ),
        evidence=[hit.quote()],
        fixes=[
            Fix(
                Words("migrate the file and read the list of changes that it prints", "迁移该文件，并阅读它打印的变更清单"),
                f"vllm-sr config migrate --config {file}",
            ),
        ],
        verify=Words("`vllm-sr config validate` on the migrated file ends without errors", "对迁移后的文件执行 `vllm-sr config validate` 无错误"),
        confidence=STATED,
        explains=("R29",),
    )


def _own_file_has_profile(case: Case) -> bool:
    return any(_PROFILE_KEY.search(str(text)) for text in case.context.members("files").values())


def image_is_newer_than_the_cli(case: Case) -> Found | Abstention | None:
    hit = case.log.first(PROFILE)
    if hit is None or _own_file_has_profile(case):
        return None
    files = case.context.members("files")
    cli, image = case.log.first(CLI_VERSION), _image(case)
    cli_version = cli["version"] if cli else case.context.text("versions.cli") or case.context.text("versions.vllm_sr")
    image_version = image[0] if image else case.context.text("versions.image") or case.context.text("versions.router")
    generated = case.log.first(GENERATED)
    if not files and generated is None and not (cli_version and image_version and cli_version != image_version):
        return Abstention(
            Words(
                "`profile was removed`, and it is not known whether the user's own configuration has `profile` (then `vllm-sr config migrate`) or the command line wrote it (then versions differ): the file, and"
                " `vllm-sr --version` beside the version of the image, would tell",
                "出现 `profile was removed`，但不知道是用户自己的配置含有 `profile`（应执行 `vllm-sr config migrate`），还是命令行写入的（版本不一致）：需要该文件，以及 `vllm-sr --version` 与镜像版本",
            ),
            [hit.quote()],
        )
    versions = Words(
        f" The CLI is {cli_version}, the image {image_version}." if cli_version and image_version else "",
        f"CLI 为 {cli_version}，镜像为 {image_version}。" if cli_version and image_version else "",
    )
    quotes: list[Quote] = [hit.quote(), *(each.quote() for each in (cli, image[1] if image else None, generated) if each is not None)]
    own = next(iter(files), "")
    if own:
        quotes.append(case.context.quote(f"files.{own}", str(files[own]).strip().split("\n")[0]))
    wanted = f":{cli_version}" if cli_version else ":$(vllm-sr --version | grep -o '[0-9][0-9.]*' | head -1)"
    return Found(
        cause=Words(
            f"The user's own configuration has no `profile`: the command line (CLI) wrote it into the generated one, and the router image is newer and has removed it.{versions.en} Migrating the file changes nothing.",
            f"用户自己的配置里没有 `profile`：它由命令行（CLI）写入生成的配置，而路由器镜像更新，已移除该字段。{versions.zh}迁移配置文件没有用。",
        ),
        evidence=quotes,
        fixes=[
            Fix(
                Words("reinstall the CLI from the same channel as the image, so that both match", "从与镜像相同的渠道重新安装 CLI，使两者版本匹配"),
                "pip install --upgrade --pre vllm-sr" if "dev" in image_version or "rc" in image_version else "pip install --upgrade vllm-sr",
            ),
            Fix(Words("or run the image that was built with this CLI", "或运行与该 CLI 一同构建的镜像"), f"vllm-sr serve --image {_image_name(image)}{wanted}"),
        ],
        verify=Words(
            "`vllm-sr --version` and the `version` of `starting router` are of one release, and the start goes past `configuration loaded`",
            "`vllm-sr --version` 与 `starting router` 中的 `version` 属同一版本，且启动越过 `configuration loaded`",
        ),
        confidence=STATED if files else 0.85,
        explains=("R16",),
    )


def _image(case: Case) -> tuple[str, Hit] | None:
    for hit in case.log.hits(IMAGE):
        if version := hit["version"] or hit["own"]:
            return version, hit
    return None


def _image_name(image: tuple[str, Hit] | None) -> str:
    named = re.search(r"(\S+/\S+?):", image[1].line.text) if image else None
    return named[1] if named else "ghcr.io/vllm-project/semantic-router/vllm-sr"


RULES: Final = (
    Rule(
        id="R16",
        title=Words("The configuration is of an older version", "配置来自旧版本"),
        symptoms=Words(
            "messages name `removed model execution fields`, `precision`, `use_mmbert_32k`, `polarity_guard` and the like",
            "报错提到 `removed model execution fields`、`precision`、`use_mmbert_32k`、`polarity_guard` 等",
        ),
        why=Words("fields of an older version", "旧版本的字段"),
        needs=Words("the fields", "相关字段"),
        remedy=Words("`vllm-sr config migrate`", "运行 `vllm-sr config migrate`"),
        check=Words("`vllm-sr config validate`", "`vllm-sr config validate`"),
        judge=fields_of_an_older_version,
        sees=(GIVEN, REMOVED, PROFILE),
    ),
    Rule(
        id="R17",
        title=Words("The router image is newer than the CLI", "路由器镜像比 CLI 新"),
        symptoms=Words("`profile was removed`, and the user's file has no `profile`", "`profile was removed`，而用户文件中没有 `profile`"),
        why=Words("the CLI wrote the field", "该字段由 CLI 写入"),
        needs=Words("versions of CLI and image, the file", "CLI 与镜像版本、配置文件"),
        remedy=Words("CLI and image from one channel", "CLI 与镜像来自同一渠道"),
        check=Words("it starts", "能够启动"),
        judge=image_is_newer_than_the_cli,
        sees=(PROFILE, CLI_VERSION, IMAGE, GENERATED),
    ),
)
