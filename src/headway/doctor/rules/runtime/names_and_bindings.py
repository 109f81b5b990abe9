"""What a configuration refers to: a model that does not do what it is bound for (R18), a name that nothing has (R29)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.deployments import deployment, documents, inside, nearest
from headway.doctor.rules.runtime.loose_reference import REFUSED, listed_names, loose_reference
from headway.doctor.rules.runtime.statement import behind, called, model_of
from headway.doctor.words import Words

MISFIT: Final = sight("a binding does not match the model")
UNDECLARED: Final = sight(
    "not among providers.models",
    "is not declared",
    "not declared in",
    "undeclared",
    "unknown model",
    "unknown deployment",
    "unknown signal",
    "unknown card",
    'is called "',
    "does not exist",
    "is not a declared",
    "is not in providers",
    "is not in routing",
    "is not defined",
    'named "',
    "named '",
    "not found in",
    "' not found",
    '" not found',
    "` not found",
    "no such model",
    "not defined in",
    "references ",
    "that is not there",
    "which is not there",
    "no deployment of provider",
    pattern=r"(?P<kind>model card|model|deployment|signal|card|recipe|alias|decision|backend|LoRA|projection|entrypoint|[a-z_]{1,40} signal)s?\b[^\"'`.\[\]]{0,40}?[\"'`](?P<name>[\w./:@\-]+)[\"'`]"
    r"(?:(?!references|refers |names |uses )[^\"'`]){0,40}?(?:not among|(?:is |are )?(?:not|never) (?:declared|defined|found|there|known|listed)|undeclared|unknown|does not exist|no such|is used, and is no deployment|is not an? (?:declared|known) )"
    r"|(?P<no>no (?:[a-z_]+ )?(?:model|deployment|signal|recipe|card)) is (?:called|named) [\"'`](?P<called>[\w./:@\-]+)[\"'`]"
    r"|[\"'`](?P<bare>[\w./:@\-]+)[\"'`],? (?:which |that )?(?:is|are) not (?:declared|defined|among|listed|known|in )"
    r"|(?:unknown|undeclared|no such) (?P<kind2>model card|model|deployment|signal|card|recipe|alias|decision|entrypoint)s?(?: reference)?:? [\"'`]?(?P<unknown>[\w./:@\-]+)[\"'`]?",
)
_PLACE: Final = re.compile(r"\b((?:routing|global|providers|recipes|listeners|entrypoints)(?:\.[\w\-]+|\[\d+\])+)")
_OF_A_CONFIGURATION: Final = re.compile(
    r"\b(?:routing|global|providers|recipes|listeners|entrypoints)[.\[]|CONFIG_VALIDATION_ERROR|[Cc]onfiguration|\b(?:decision|recipe|entrypoint|modelRefs|alias)\b"
)
_LEAF: Final = re.compile(r"\.(?:model|deployment|card|signal|alias|recipe|decision|backend|name)$")
_MEANT: Final = re.compile(r"[Dd]id you mean [\"'`]?(?P<name>[\w./:@\-]+?)[\"'`]?\?")
_LIMIT: Final = re.compile(
    r"max_tokens (?:is |of |= ?)?(?P<asked>\d+).*?(?:at most|limit(?: is| of)?|max(?:imum)?) (?P<most>\d+)|(?P<more>\d+) tokens.*?(?:at most|limit(?: is| of)?) (?P<least>\d+)"
    r"|limit (?:of |is )?(?P<small>\d+)\b.*?(?:smaller|less|below|under)\D*(?P<wanted>\d+)"
)
_TARGET: Final = re.compile(r"(?:bindings\.)?(?P<consumer>[\w.\-]{1,80}?) ?->\s?(?P<deployment>[\w./\-]+)|(?P<needing>[\w.\-]{1,80}) needs ")


def model_does_not_fit(case: Case) -> Found | None:
    hit = case.log.first(MISFIT)
    if hit is None:
        return None
    what = behind(hit).strip(" :")
    target = _TARGET.search(what)
    fields = hit.line.fields
    consumer = (
        (target["consumer"] or target["needing"] or "" if target else "")
        or str(fields.get("consumer", ""))
        or (m[1] if (m := re.match(r"(?:bindings\.)?([\w.\-]+):", what)) else "")
    )
    name = (target["deployment"] or "" if target else "") or model_of(hit)
    place = deployment(case, name)
    limit = _LIMIT.search(what)
    model = called(f"{name}{f' ({place.artifact})' if place.artifact else ''}", "the model", "该模型")
    difference = re.sub(r"^.*?->\s?[\w./\-]+: ?", "", what)
    told = re.sub(r"contract \S+", "", difference.lower())  # its name may hold any of these words
    kinds = ("label", "dimension", "head", "surface", "limit")
    kind = next((word for word in kinds if re.search(rf"\b{word}s? (?:differ|mismatch|(?:do|does) not)", told)), "") or next(
        (word for word in kinds if word in told), "limit" if limit else "contract"
    )
    both = re.search(r"\((?P<sides>[^()]{1,120})\)", difference)
    sides = Words(f" ({both['sides']})", f"（{both['sides']}）") if both and kind in ("head", "dimension") else Words("", "")
    quotes = [hit.quote()]
    if limit and "label" not in what:
        most, asked = limit["most"] or limit["least"] or limit["small"], limit["asked"] or limit["more"] or limit["wanted"]
        owner = name or place.name
        setting = f"global.model_catalog.deployments.{owner}.input.max_tokens: {most}" if owner else f"input.max_tokens: {most}"
        fixes = [
            Fix(Words(f"set the input limit to what the model reads ({most} tokens)", f"把输入上限改为模型可读的长度（{most} token）"), setting),
            Fix(Words(f"or bind another model that reads {asked} tokens", f"或绑定能读取 {asked} token 的其他模型"), None),
        ]
    else:
        fixes = [
            Fix(
                Words(
                    f"bind another model, one trained for {consumer or 'this feature'}{'' if kind == 'contract' else f', with its {kind}s'}{sides.en}",
                    f"为 {consumer or '该功能'} 绑定专门训练、{_KINDS_ZH.get(kind, '契约')}相符的模型{sides.zh}",
                ),
                _specialist(consumer) if consumer in _SPECIALISTS else None,
            ),
            *(
                [
                    Fix(
                        Words(
                            f"or change the rule's labels to those of {name or 'the model'}: {_labels(what)}",
                            f"或把规则的标签改成 {name or '该模型'}的标签：{_labels(what)}",
                        ),
                        None,
                    )
                ]
                if kind == "label" and _labels(what)
                else []
            ),
        ]
    return Found(
        cause=Words(
            f"{consumer or 'A feature'} is bound to {model.en}, which cannot do it: {difference[:400]}. The model itself is loaded and in order; another start does not change its {kind}{'s' if kind != 'limit' else ''}.",
            f"{consumer or '某个功能'}绑定到 {model.zh}，但后者不符合要求：{difference[:400]}。模型本身已加载且正常；重启不会改变它的{_KINDS_ZH.get(kind, '契约')}。",
        ),
        evidence=quotes,
        fixes=fixes,
        verify=Words(
            "`vllm-sr config validate --config config.yaml` against the running models ends without errors, and the start goes to `router ready`",
            "针对运行中的模型执行 `vllm-sr config validate --config config.yaml` 无错误，启动到达 `router ready`",
        ),
        confidence=STATED,
        explains=("R11", "R13", "R30"),
    )


_KINDS_ZH: Final[Mapping[str, str]] = {"label": "标签", "dimension": "维度", "head": "输出头", "surface": "接口", "limit": "上限"}
# the built-in task models of the consumers
_SPECIALISTS: Final[Mapping[str, str]] = {
    "domain_classifier": "Domain",
    "pii_classifier": "PII",
    "prompt_guard": "Guard",
    "fact_check_classifier": "FactCheck",
    "feedback_detector": "Feedback",
    "modality_detector": "Modality",
    "hallucination_detector": "Halu",
    "embedding": "Embedding",
    "rag.reranker": "Reranker",
}


def _specialist(consumer: str) -> str:
    """The deployment of the built-in model, and the binding to it."""
    name = _SPECIALISTS[consumer]
    return (
        f"global.model_catalog: {{deployments: {{vela-{name.lower()}: {{provider: model_runtime, artifact: vllm-sr/Vela-1.0-Encoder-307M-{name}}}}},"
        f" bindings: {{{consumer}: {{deployment: vela-{name.lower()}}}}}}}"
    )


def _labels(what: str) -> str:
    found = re.search(r"(?:model has|has) \[?(?P<labels>['\w][\w'\", \-]*)\]?", what)
    return found["labels"].replace("'", "").replace('"', "").replace(",", ", ").replace("  ", " ") if found else ""


def name_is_not_declared(case: Case) -> Found | None:
    hit = next((hit for hit in case.log.hits(UNDECLARED) if _OF_A_CONFIGURATION.search(hit.line.text)), None)
    if hit is None:
        hit = next((each for each in case.log.hits(REFUSED) if loose_reference(each.line.text)), None)
        loose = loose_reference(hit.line.text) if hit else None
        if hit is None or loose is None:
            return None
        name, kind = loose.name, loose.kind
    else:
        name = hit["name"] or hit["called"] or hit["unknown"] or hit["bare"]
        kind = hit["kind"] or hit["no"].removeprefix("no ") or hit["kind2"] or "name"
    text = hit.line.text
    where = _PLACE.search(text)
    meant = _MEANT.search(text)
    known = [each for each in listed_names(text) if each != name]
    known += [each for each in _declared(case, kind) if each not in known]
    scope = name.rpartition(":")[0]
    near = meant["name"] if meant else nearest(name, known)
    if scope and not near and (leaf := nearest(name.rpartition(":")[2], known)):
        near = f"{scope}:{leaf}"
    quotes: list[Quote] = [hit.quote()]
    path = f" ({where[1]})" if where else ""
    shown = ", ".join(known[:8])
    have = Words(f" Declared are: {shown}." if known else "", f"已声明的有：{shown}。" if known else "")
    like = Words(f" The nearest is {near}." if near else "", f"最接近的是 {near}。" if near else "")
    if near:
        fix = Fix(
            Words(f"write {near} instead of {name}", f"把 {name} 改为 {near}"),
            f"{where[1]}: {near}" if where and _LEAF.search(where[1]) else _replacement(name, near),
        )
    else:
        fix = Fix(Words(f"correct the name, or declare {kind} {name}", f"更正名称，或声明 {kind} {name}"), f"{where[1]}" if where else None)
    return Found(
        cause=Words(
            f"The configuration refers to {kind} `{name}`{path}, which is not declared anywhere.{have.en}{like.en} Nothing was started; names are compared exactly.",
            f"配置引用了 {kind} `{name}`{path.replace(' (', '（').replace(')', '）')}，但没有任何声明。{have.zh}{like.zh}尚未启动任何服务；名称须完全一致。",
        ),
        evidence=quotes,
        fixes=[fix, *([Fix(Words(f"or declare {name}, if it was left out", f"若是遗漏，则声明 {name}"), None)] if near else [])],
        verify=Words("`vllm-sr config validate --config config.yaml` ends without errors", "`vllm-sr config validate --config config.yaml` 无错误"),
        confidence=STATED if near or known else 0.85,
        explains=("N2", "R28"),
    )


def _replacement(name: str, near: str) -> str:
    """As a whole word: another name may begin with this one."""
    inside_names = "A-Za-z0-9_./@-"
    return f"sed -i -E 's#(^|[^{inside_names}]){re.sub(r'([.])', r'[.]', name)}([^{inside_names}]|$)#\\1{near}\\2#' config.yaml"


def _declared(case: Case, kind: str) -> Iterator[str]:
    """Names of that kind in the configuration files of the context."""
    for _, tree in documents(case):
        if "deployment" in kind:
            yield from map(str, inside(tree, "global", "model_catalog", "deployments") or {})
        elif "signal" in kind:
            for rules in (inside(tree, "routing", "signals") or {}).values():
                yield from _names(rules)
        elif "recipe" in kind:
            yield from _names(inside(tree, "recipes"))
        else:
            yield from _names(inside(tree, "providers", "models"))
            yield from _names(inside(tree, "routing", "modelCards"))


def _names(items: Any) -> Iterator[str]:
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            yield item["name"]


RULES: Final = (
    Rule(
        id="R18",
        title=Words("A binding does not match the model", "绑定与模型不匹配"),
        symptoms=Words("`a binding does not match the model`", "`a binding does not match the model`"),
        why=Words("labels, head, dimension or input limit are not the feature's", "标签、输出头、维度或输入上限与功能不符"),
        needs=Words("both sides of the difference", "差异的双方"),
        remedy=Words("a model trained for the feature; another input limit; the rule's labels", "专用模型；调整输入上限；修改规则标签"),
        check=Words("`vllm-sr config validate`", "`vllm-sr config validate`"),
        judge=model_does_not_fit,
        sees=(MISFIT, *DEPLOYMENTS),
    ),
    Rule(
        id="R29",
        title=Words("The configuration names something that is not declared", "配置引用了未声明的名称"),
        symptoms=Words("a reference to a model, card, signal or deployment that is not declared", "引用了未声明的模型、卡片、信号或 deployment"),
        why=Words("a misspelt name", "名称拼写错误"),
        needs=Words("the declared names", "已声明的名称"),
        remedy=Words("the nearest declared name", "最接近的已声明名称"),
        check=Words("`vllm-sr config validate`", "`vllm-sr config validate`"),
        judge=name_is_not_declared,
        sees=(UNDECLARED, REFUSED),
    ),
)
