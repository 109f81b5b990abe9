"""L6 and L17: the text side of a model: its tokenizer cannot be read, or it has no chat template."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.model_folder import file_named, hub_id, model_directory, model_files, model_place
from headway.doctor.rules.loading.outcome import of_the_model_runtime, only_a_warning, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

UNREADABLE: Final = sight(
    "Converting from SentencePiece and Tiktoken failed",
    "Can't load tokenizer for",
    "Tokenizer not found",
    "instantiate the backend tokenizer",
    "Tokenizer class ",
    "Failed to load the tokenizer",
    'Not found: "',
    "No tokenizer file found in directory",
    "untagged enum ModelWrapper",
    "untagged enum PreTokenizerWrapper",
    "Unable to load vocabulary from file",
    "cannot find tokenizer merges in model file",
    "error loading model vocabulary",
    "unknown pre-tokenizer type",
    "[tokenizer_missing]",
    "[tokenizer_invalid]",
    "[tokenizer_config_invalid]",
    "[tokenizer_needs_package]",
    pattern=r"(?:error loading model vocabulary.*)?unknown pre-tokenizer type: '(?P<pre>[^']*)'|Converting from SentencePiece|Can't load tokenizer for '(?P<name>[^']+)'|Tokenizer not found|instantiate the backend tokenizer"
    r"|Tokenizer class (?P<class>\w+) does not exist|Failed to load the tokenizer|Not found: \"[^\"]*(?P<missing>tokenizer\.model|\.model|spiece)"
    r"|No tokenizer file found|untagged enum (?P<enum>\w+)|Unable to load vocabulary|cannot find tokenizer merges|error loading model vocabulary"
    r"|\[tokenizer_\w+\]",
)
READER: Final = sight(
    "No module named 'sentencepiece'",
    "No module named 'tiktoken'",
    "No module named 'blobfile'",
    "No module named 'google.protobuf'",
    "No module named 'mistral_common'",
    "requires the SentencePiece library",
    "requires the protobuf library",
    "`tiktoken` is required",
    "need to install tiktoken",
    "need to install sentencepiece",
    pattern=r"No module named '(?P<module>[\w.]+)'|requires the (?P<library>\w+) library|(?P<other>tiktoken|sentencepiece)",
)
TOKENIZER_FILES: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "tekken.json",
    "spiece.model",
    "sentencepiece.bpe.model",
)


def tokenizer_unreadable(case: Case) -> Found | None:
    """The first exception of the chain names the missing reader; the listing of the folder names the missing files."""
    reader, hit = case.log.first(READER), case.log.first(UNREADABLE)
    first = reader or hit
    if first is None or overcome(case, first) or of_the_model_runtime(case) or only_a_warning(first):
        return None
    module = _module(reader["module"] or reader["library"] or reader["other"]) if reader else ""
    there = {file.name.rsplit("/", 1)[-1] for file in model_files(case)}
    lacking = bool(there) and not there & set(TOKENIZER_FILES)
    too_new = hit is not None and bool(hit["enum"] or hit["pre"])
    folder, name = model_directory(case), hub_id(case)
    reasons: list[Words] = []
    fixes: list[Fix] = []
    if lacking:
        reasons.append(
            Words(
                f"the folder has neither tokenizer.json nor tokenizer.model (only {', '.join(sorted(there)[:4])})",
                f"目录中既没有 tokenizer.json 也没有 tokenizer.model（只有 {', '.join(sorted(there)[:4])}）",
            )
        )
        source = name or _origin(case)
        fixes.append(
            Fix(
                Words(
                    "copy the missing tokenizer files from the original repository into the folder",
                    "把缺失的分词器文件从原始仓库复制到该目录",
                ),
                f'hf download {source} --include "tokenizer*" "*.model" "vocab*" "merges*" --local-dir {folder}'
                if source and folder
                else None,
            )
        )
        if origin := _origin(case) or name:
            fixes.append(
                Fix(
                    Words("or name the repository that has the tokenizer", "或指定带有分词器的仓库"),
                    f"--tokenizer {origin}",
                )
            )
    if module:
        reasons.append(
            Words(
                f"the Python module {module} that reads this tokenizer is not installed",
                f"读取该分词器的 Python 模块 {module} 未安装",
            )
        )
        fixes.append(
            Fix(
                Words(f"install the reader {module}", f"安装读取模块 {module}"),
                f"pip install {module}" + (" sentencepiece protobuf" if module == "tiktoken" else ""),
            )
        )
    if too_new and hit is not None:
        reasons.append(
            Words(
                f"the tokenizer file is newer than the program that reads it ({hit['enum'] or hit['pre']} is unknown)",
                f"分词器文件比读取它的程序新（不认识 {hit['enum'] or hit['pre']}）",
            )
        )
        fixes.append(
            Fix(
                Words("upgrade the reader", "升级读取程序"),
                "git -C llama.cpp pull && cmake --build llama.cpp/build -j"
                if hit["pre"]
                else "pip install -U tokenizers transformers",
            )
        )
    if not reasons:
        klass = hit["class"] if hit else ""
        reasons.append(
            Words(f"its class {klass} is not known to this transformers", f"当前 transformers 不认识其类 {klass}")
            if klass
            else Words("a tokenizer file is missing or cannot be parsed", "分词器文件缺失或无法解析")
        )
        if klass:
            fixes.append(
                Fix(
                    Words(f"install a transformers version that has {klass}", f"安装包含 {klass} 的 transformers 版本"),
                    "pip install -U transformers",
                )
            )
        fixes.append(Fix(
            Words("download the tokenizer files again (tokenizer.json, tokenizer_config.json, tokenizer.model)", "重新下载分词器文件（tokenizer.json、tokenizer_config.json、tokenizer.model）"),
            f"hf download {name} --include \"tokenizer*\" \"*.model\"" + (f" --local-dir {folder}" if folder else "") if name else None,
        ))  # fmt: skip
        fixes.append(
            Fix(
                Words(
                    "or name another tokenizer, such as that of the base model, with --tokenizer",
                    "或用 --tokenizer 指定其他分词器，例如基座模型的分词器",
                )
            )
        )
    where = model_place(case) or "the model"
    path = model_place(case) or "."
    return Found(
        cause=Words(
            f"The tokenizer of {where} cannot be loaded: {' and '.join(reason.en for reason in reasons)}. The weights are not the problem.",
            f"无法加载 {where} 的分词器：{'；'.join(reason.zh for reason in reasons)}。问题不在权重。",
        ),
        evidence=quoted(reader, hit),
        fixes=fixes,
        verify=Words(
            f"`python -c \"from transformers import AutoTokenizer; AutoTokenizer.from_pretrained('{path}')\"` prints nothing",
            f"`python -c \"from transformers import AutoTokenizer; AutoTokenizer.from_pretrained('{path}')\"` 没有报错输出",
        ),
        confidence=STATED if lacking or module else 0.88,
        explains=("L10",),
    )


def _module(name: str) -> str:
    return {"google.protobuf": "protobuf", "SentencePiece": "sentencepiece", "mistral_common": "mistral-common"}.get(
        name, name
    )


def _origin(case: Case) -> str:
    """The repository that the configuration says it comes from."""
    origin = case.context.text("model.config._name_or_path")
    return origin if re.fullmatch(r"[\w.\-]+/[\w.\-]+", origin) else ""


NO_TEMPLATE: Final = sight(
    "default chat template is no longer allowed",
    "chat_template is not set",
    "needs a default chat template",
    "does not have a chat template",
    "must provide a chat template",
    "[chat_template_missing]",
    "No chat template is defined",
)
LOST_TEMPLATE: Final = sight(
    "looks like a file path, but it failed to be opened",
    "The supplied chat template",
    pattern=r"The supplied chat template \(?['\"]?(?P<path>[^'\")\s]+).*(?:looks like a file path|not found)",
)
CHAT_REFUSED: Final = sight('/chat/completions HTTP/1.1" 400')


def no_chat_template(case: Case) -> Found | None:
    """Chat calls fail, or the start does when the named template is no file; a warning at the start with no chat call
    refused is a remark."""
    lost = case.log.first(LOST_TEMPLATE)
    hit = case.log.first(NO_TEMPLATE) or lost
    if hit is None or of_the_model_runtime(case):
        return None
    refused = case.log.count(CHAT_REFUSED)
    harmless = only_a_warning(hit) and not refused
    name = case.launch.model or hub_id(case)
    variant = _instruct(name)
    if lost is not None:
        why = Words(
            f"The chat template {lost['path']} does not exist where the server runs",
            f"聊天模板 {lost['path']} 在服务器运行处不存在",
        )
    elif variant:
        why = Words(
            f"{name} is a base model and its tokenizer has no chat template: it cannot turn messages into a prompt",
            f"{name} 是基座模型，其分词器没有聊天模板，无法把 messages 变成提示词",
        )
    else:
        config = file_named(case, "tokenizer_config.json")
        hint = "; tokenizer_config.json is missing in the folder" if model_files(case) and config is None else ""
        why = Words(
            f"The tokenizer of {name or 'this model'} has no chat template{hint}, so messages cannot be turned into a prompt",
            f"{name or '该模型'} 的分词器没有聊天模板{'（目录缺少 tokenizer_config.json）' if hint else ''}，无法把 messages 变成提示词",
        )
    count = Words(
        f"; {refused} chat calls were refused with 400, while /v1/completions works" if refused else "",
        f"；已有 {refused} 次聊天请求返回 400，而 /v1/completions 可用" if refused else "",
    )
    fixes: list[Fix] = []
    if variant and lost is None:
        fixes.append(
            Fix(
                Words(
                    f"serve the instruct variant, which brings a chat template ({variant})",
                    f"改用自带聊天模板的指令微调版本（{variant}）",
                ),
                case.launch.command.replace(name, variant)
                if name and name in case.launch.command
                else f"vllm serve {variant}",
            )
        )
    fixes.append(
        Fix(
            Words("give the chat template that this model was trained with", "提供该模型训练时使用的聊天模板"),
            "--chat-template ./chat_template.jinja",
        )
    )
    fixes.append(
        Fix(
            Words("or send plain text to /v1/completions instead of messages", "或改为向 /v1/completions 发送纯文本"),
            f'curl -s http://127.0.0.1:8000/v1/completions -H \'Content-Type: application/json\' -d \'{{"model": "{name or "model"}", "prompt": "Hello", "max_tokens": 8}}\'',
        )
    )
    return Found(
        cause=Words(f"{why.en}{count.en}.", f"{why.zh}{count.zh}。"),
        evidence=quoted(hit, lost, case.log.first(CHAT_REFUSED)),
        fixes=fixes,
        verify=Words("one call of /v1/chat/completions answers 200", "调用一次 /v1/chat/completions 返回 200"),
        confidence=0.4 if harmless else STATED,
        weight="remark" if harmless else "fatal",
        explains=("N6",),
    )


def _instruct(name: str) -> str:
    """The likely name of the instruct variant of a base model, "" when the name says that it is one, or is a path."""
    if not re.fullmatch(r"[\w.\-]+/[\w.\-]+", name) or re.search(
        r"(?i)instruct|chat|-it\b|assistant|tulu|zephyr|hermes", name
    ):
        return ""
    if "gemma" in name.lower():
        return re.sub(r"-pt$", "", name) + "-it"
    version = re.search(r"-v\d[\d.]*$", name)
    bare = re.sub(r"-(?:[Bb]ase|pt|hf)$", "", name[: version.start()] if version else name)
    return f"{bare}-Instruct{version[0] if version else ''}"


RULES: Final = (
    Rule(
        id="L6",
        proof="live",
        title=Words("The tokenizer cannot be loaded", "无法加载分词器"),
        symptoms=Words(
            "`Converting from SentencePiece and Tiktoken failed`, `Can't load tokenizer`, `No module named 'sentencepiece'`",
            "`Converting from SentencePiece and Tiktoken failed`、`Can't load tokenizer`、`No module named 'sentencepiece'`",
        ),
        why=Words("tokenizer files are missing, or the library that reads them is", "缺少分词器文件，或缺少读取它的库"),
        needs=Words("the listing of the folder and the first exception of the chain", "目录列表与异常链中的第一个异常"),
        remedy=Words("copy the files, install the reader, or --tokenizer", "复制文件、安装读取库，或用 --tokenizer"),
        check=Words("load the tokenizer alone", "单独加载分词器"),
        judge=tokenizer_unreadable,
        sees=(UNREADABLE, READER),
    ),
    Rule(
        id="L17",
        title=Words("No chat template", "没有聊天模板"),
        symptoms=Words(
            "`default chat template is no longer allowed`, `tokenizer.chat_template is not set`",
            "`default chat template is no longer allowed`、`tokenizer.chat_template is not set`",
        ),
        why=Words("a base model, or the file with the template is missing", "基座模型，或缺少模板文件"),
        needs=Words("the name of the model and its tokenizer files", "模型名与分词器文件"),
        remedy=Words(
            "the instruct variant, --chat-template, or /v1/completions",
            "指令微调版本、--chat-template 或 /v1/completions",
        ),
        check=Words("one chat call", "调用一次聊天接口"),
        judge=no_chat_template,
        sees=(NO_TEMPLATE, LOST_TEMPLATE, CHAT_REFUSED),
    ),
)
