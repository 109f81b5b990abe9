"""L7: a weight file is not what its name says: a Git LFS pointer, a web page, or only a part of the file."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.model_folder import Damage, ModelFile, hub_id, model_directory, model_files
from headway.doctor.rules.loading.outcome import of_the_model_runtime, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

HEADER: Final = sight(
    "Error while deserializing header",
    "while deserializing header",
    pattern=r"while deserializing header: ?(?P<what>.*)",
)
HEADWAY: Final = sight(
    *(
        f"[{reason}]"
        for reason in ("truncated", "header_length", "header_json", "hash_mismatch", "index_invalid", "missing_shards")
    ),
    pattern=r"^.*\[(?P<reason>truncated|header_length|header_json|hash_mismatch|index_invalid|missing_shards)\]\s*$",
)
MAGIC: Final = sight(
    "invalid magic", "bad magic", pattern=r"(?:invalid magic characters?:? ?['\"]?(?P<magic>[^'\",]*)|bad magic)"
)
GGUF_SHORT: Final = sight(
    "is not within the file bounds",
    "model is corrupted or incomplete",
    "failed to read tensor data",
    "failed to read key-value pairs",
    "failed to read magic",
)
GGUF_NAME: Final = sight(
    "loading model '",
    "failed to load model from ",
    "failed to load model, '",
    "failed to load model '",
    pattern=r"(?:loading model|failed to load model(?: from|,)?) '?(?P<name>[^'\s]+\.gguf)",
)
PICKLE: Final = sight(
    "failed finding central directory",
    "invalid load key",
    "file in archive is not in a subdirectory",
    pattern=r"failed finding central directory|invalid load key, '(?P<key>[^']*)'|file in archive is not in",
)
SIZE: Final = sight(
    "Consistency check failed",
    pattern=r"Consistency check failed: file should be of size (?P<wanted>\d+) but has size (?P<found>\d+)(?: \((?P<name>[^)]+)\))?",
)
BAD_JSON: Final = sight(
    "is not a valid JSON file", pattern=r"config file at '(?P<name>[^']+)' is not a valid JSON file"
)

_SAID: Final[tuple[tuple[str, Damage], ...]] = (
    (
        r"(?i)incomplete|not fully covered|MetadataIncompleteBuffer|not within the file bounds|central directory|missing_shards|truncated",
        "truncated",
    ),
    (
        r"(?i)header ?too ?large|HeaderTooLarge|InvalidHeader|invalid header|header_length|header_json|HeaderTooSmall|header too small",
        "not a model file",
    ),
)


def file_is_something_else(case: Case) -> Found | None:
    """What the files in the context are decides; without them the message itself separates a truncated file from one that
    never was a weight file."""
    hit = case.log.first(HEADER, HEADWAY, MAGIC, GGUF_SHORT, PICKLE, SIZE, BAD_JSON)
    if hit is None or overcome(case, hit) or of_the_model_runtime(case):
        return None
    gguf = case.log.first(GGUF_NAME)
    bad = [file for file in model_files(case) if file.damage is not None]
    size = case.log.first(SIZE)
    text = hit.line.text
    damage = bad[0].damage if bad else _from_text(case, text)
    name = bad[0].name if bad else gguf["name"].rsplit("/", 1)[-1] if gguf else size["name"] if size else ""
    evidence = quoted(hit, gguf if gguf and not bad else None)
    for file in bad[:2]:
        evidence.append(case.context.quote(f"{file.path}.head" if file.head else f"{file.path}.bytes"))
    what = _what(damage, bad, name)
    return Found(
        cause=Words(f"{what.en} The program that reads it is not to blame.", f"{what.zh}读取它的程序没有问题。"),
        evidence=evidence,
        fixes=_fixes(case, damage, [file.name for file in bad] or ([name] if name else [])),
        verify=_verify(case, damage, bad, name),
        confidence=STATED if bad or damage != "not a model file" else 0.9,
        explains=("L8", "L6"),
    )


def _from_text(case: Case, text: str) -> Damage:
    magic = case.log.first(MAGIC)
    pickle = case.log.first(PICKLE)
    start = (magic["magic"] if magic else "") or (pickle["key"] if pickle else "")
    if start.startswith(("vers", "v")):
        return "pointer"
    if start.startswith("<"):
        return "web page"
    if size := case.log.first(SIZE):
        return "truncated" if int(size["found"]) < int(size["wanted"]) else "not a model file"
    if case.log.sees(GGUF_SHORT):
        return "truncated"
    return next((damage for pattern, damage in _SAID if re.search(pattern, text)), "not a model file")


def _what(damage: Damage | None, bad: list[ModelFile], name: str) -> Words:
    file = bad[0] if bad else None
    shown = name or "A weight file"
    shown_zh = name or "某个权重文件"
    more = Words(
        f" (and {len(bad) - 1} more)" if len(bad) > 1 else "", f"（另有 {len(bad) - 1} 个）" if len(bad) > 1 else ""
    )
    nbytes = Words(
        f" of {file.nbytes:,} bytes" if file and file.nbytes is not None else "",
        f"（{file.nbytes:,} 字节）" if file and file.nbytes is not None else "",
    )
    if damage == "pointer":
        return Words(
            f"{shown}{more.en} is a Git LFS pointer{nbytes.en}, a small text that stands for the weights: the repository was cloned without LFS.",
            f"{shown_zh}{more.zh} 是 Git LFS 指针{nbytes.zh}，只是代表权重的一小段文本：克隆仓库时没有使用 LFS。",
        )
    if damage == "web page":
        return Words(
            f"{shown}{more.en} is an HTML web page{nbytes.en} (an error or login page that was saved under that name), not a GGUF or safetensors file.",
            f"{shown_zh}{more.zh} 是一个 HTML 网页{nbytes.zh}（以该名字保存的错误页或登录页），不是 GGUF 或 safetensors 文件。",
        )
    if damage in ("truncated", "empty"):
        if file is not None and file.nbytes is not None and file.expected:
            return Words(
                f"{shown}{more.en} is truncated: {file.nbytes:,} of {file.expected:,} bytes are there ({100 * file.nbytes / file.expected:.1f} %), the download was interrupted.",
                f"{shown_zh}{more.zh} 被截断：只有 {file.nbytes:,} / {file.expected:,} 字节（{100 * file.nbytes / file.expected:.1f} %），下载被中断。",
            )
        return Words(
            f"{shown}{more.en} is truncated{nbytes.en}: its header promises more bytes than the file has, the download or copy was interrupted.",
            f"{shown_zh}{more.zh} 被截断{nbytes.zh}：文件头声明的字节数多于实际，下载或复制被中断。",
        )
    return Words(
        f"{shown} does not start like a weight file: usually it is a Git LFS pointer or an HTML error page under that name (its first bytes tell), or it is damaged.",
        f"{shown_zh}的开头不是权重文件格式：通常是同名的 Git LFS 指针或 HTML 错误页（看开头几个字节即可判断），或文件已损坏。",
    )


def _fixes(case: Case, damage: Damage | None, names: list[str]) -> list[Fix]:
    folder, name = model_directory(case), hub_id(case)
    again = Fix(
        Words(
            f"download {names[0] if len(names) == 1 else 'these files'} again from the original repository",
            f"从原始仓库重新下载{f' {names[0]}' if len(names) == 1 else '这些文件'}",
        ),
        _download(name, folder, names),
    )
    place = folder or "."
    if damage == "pointer":
        return [
            Fix(
                Words("fetch the real files behind the LFS pointers", "取回 LFS 指针对应的真实文件"),
                f"cd {place} && git lfs install && git lfs pull",
            ),
            again,
        ]
    if damage == "web page":
        return [
            Fix(
                Words(
                    "delete the page and download the file again from its direct (resolve) address, logged in if the repository asks for it",
                    "删除该网页文件，从直接下载（resolve）地址重新下载；仓库要求登录时先登录",
                ),
                again.command,
            ),
            Fix(
                Words(
                    "look at the page: it says why the file was not sent", "查看该网页内容：其中写明了未返回文件的原因"
                ),
                f"head -c 300 {place}/{names[0]}" if names else None,
            ),
        ]
    if damage == "not a model file":
        return [
            Fix(
                Words(
                    "look at the first bytes: `version https` is a Git LFS pointer, `<!DO` a web page",
                    "查看开头字节：`version https` 是 Git LFS 指针，`<!DO` 是网页",
                ),
                f"for f in {place}/*.safetensors; do echo $f $(stat -c %s $f) $(head -c 16 $f | tr -dc '[:print:]'); done",
            ),
            Fix(Words("for pointers: fetch the real files", "若是指针：取回真实文件"), f"cd {place} && git lfs pull"),
            again,
        ]
    return [again]


def _download(name: str, folder: str, names: list[str]) -> str | None:
    files = " ".join(file for file in names if file)
    if not name:
        return None
    target = f" --local-dir {folder}" if folder else " --force-download"
    return f"hf download {name}{' ' + files if files else ''}{target}"


def _verify(case: Case, damage: Damage | None, bad: list[ModelFile], name: str) -> Words:
    folder = model_directory(case) or "."
    file = f"{folder}/{bad[0].name if bad else name}" if bad or name else f"{folder}/*.safetensors"
    expected = f" {bad[0].expected:,}" if bad and bad[0].expected else ""
    return Words(
        f"`stat -c %s {file}` prints the size of the original{expected or ' (gigabytes, not bytes)'}, and its sha256 is the published one",
        f"`stat -c %s {file}` 输出与原始文件一致的大小{expected or '（应为 GB 级而非字节级）'}，且 sha256 与公布值相同",
    )


RULES: Final = (
    Rule(
        id="L7",
        proof="live",
        title=Words("A weight file is not what its name says", "权重文件名不副实"),
        symptoms=Words(
            "`Error while deserializing header`, `invalid magic characters`",
            "`Error while deserializing header`、`invalid magic characters`",
        ),
        why=Words(
            "a Git LFS pointer, a saved web page, or an interrupted download",
            "Git LFS 指针、被保存的网页，或中断的下载",
        ),
        needs=Words("sizes against the index, and the first bytes", "与索引对照的文件大小，以及开头字节"),
        remedy=Words("fetch that file again, `git lfs pull`", "重新获取该文件，`git lfs pull`"),
        check=Words("size and sha256", "大小与 sha256"),
        judge=file_is_something_else,
        sees=(HEADER, HEADWAY, MAGIC, GGUF_SHORT, GGUF_NAME, PICKLE, SIZE, BAD_JSON),
    ),
)
