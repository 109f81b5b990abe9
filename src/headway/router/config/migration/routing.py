"""Signals, rules, algorithms and plugins that have other names now, or are gone."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from headway.router.config.diagnostics import Path
from headway.router.config.migration.tree import Mapping, Tree, items, remove, texts

_NLI: Final = "explanations by an NLI model are gone"
_CACHES: Final = ("semantic-cache", "semantic_cache", "response-cache")
_LEARNED: Final = frozenset({"session_aware", "elo", "rl_driven", "gmtrouter", "bandit", "personalization", "thompson", "router_r1"})


def migrate_names(tree: Tree) -> None:
    """Automatic model names became an entrypoint; the newest names of signals and plugins."""
    router = tree.mapping("global", "router")
    tree.rename(router, "include_config_models_in_list", "list_backend_models", ("global", "router"))
    _aliases(tree, router)
    tree.drop(tree.mapping("global", "integrations", "looper"), "endpoint", ("global", "integrations", "looper"), "the router calls backends itself")
    for path, routing in tree.routings():
        signals = routing.get("signals")
        if isinstance(signals, MutableMapping):
            tree.rename(signals, "decision", "systemone", (*path, "signals"))
            tree.drop(signals, "hallucination", (*path, "signals"), "answers are checked by the plugin hallucination of a decision")
    for path, domain in tree.rules("domains"):
        for index, score in enumerate(items(domain.get("model_scores"))):
            tree.drop(score, "use_reasoning", (*path, "model_scores", index), "use_reasoning is said by the modelRefs of decisions")
    for path, decision in tree.decisions():
        for place, leaf in _leaves(decision.get("rules"), (*path, "rules")):
            if leaf.get("type") == "decision":
                leaf["type"] = "systemone"
                tree.done(place, "conditions on decision signals have type systemone now")
        for index, plugin in enumerate(items(decision.get("plugins"))):
            if plugin.get("type") in _CACHES:
                plugin["type"] = "response_cache"
                tree.done((*path, "plugins", index, "type"), "is called response_cache now")
    selection = tree.mapping("global", "router", "model_selection")
    if selection is not None and str(selection.get("method") or "") in _LEARNED:
        tree.drop(selection, "method", ("global", "router", "model_selection"), "learning from outcomes is not built; each decision names its algorithm")
    tree.drop(tree.mapping("global", "stores", "response_cache"), "polarity_guard", ("global", "stores", "response_cache"), "the guard is always on")


def _aliases(tree: Tree, router: Mapping | None) -> None:
    """`vllm-sr/auto`, `auto` and `MoM` always lead to the recipe default; other names need an entrypoint."""
    if router is None:
        return
    names = texts([*texts(router.get("auto_model_names")), router.get("auto_model_name")])
    wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    for key in ("auto_model_name", "auto_model_names"):
        tree.drop(router, key, ("global", "router"), f"an entrypoint leads {', '.join(wanted) or 'no name'} to the recipe default")
    if not wanted:
        return
    if not isinstance(tree.root.get("entrypoints"), list):
        tree.root["entrypoints"] = CommentedSeq()
    taken = {name for entry in items(tree.root["entrypoints"]) for name in texts(entry.get("model_names"))}
    free = [name for name in wanted if name not in taken]
    if free:
        tree.root["entrypoints"].append(CommentedMap(model_names=CommentedSeq(free), recipe="default"))


def drop_nli(tree: Tree) -> None:
    for kind in ("hallucination", "fact_check"):
        for path, rule in tree.rules(kind):
            tree.drop(rule, "use_nli", path, _NLI)
    for path, decision in tree.decisions():
        for index, plugin in enumerate(items(decision.get("plugins"))):
            configuration = plugin.get("configuration")
            if isinstance(configuration, MutableMapping):
                tree.drop(configuration, "use_nli", (*path, "plugins", index, "configuration"), _NLI)


def migrate_algorithms(tree: Tree) -> None:
    """Algorithms that learned from outcomes chose among models anyway: without them the first model answers."""
    for path, decision in tree.decisions():
        algorithm = decision.get("algorithm")
        if not isinstance(algorithm, MutableMapping):
            continue
        place = (*path, "algorithm")
        for name in _LEARNED:
            tree.drop(algorithm, name, place, "learning from outcomes is not built")
        if str(algorithm.get("type") or "").strip().lower() in _LEARNED:
            tree.open(
                (*place, "type"), f"{algorithm['type']} learned from outcomes, which is not built; choose static, multi_factor or a trained selector"
            )
        grounding = algorithm.get("fusion", {}).get("grounding") if isinstance(algorithm.get("fusion"), MutableMapping) else None
        if isinstance(grounding, MutableMapping):
            tree.rename(grounding, "nli_contradiction_penalty", "contradiction_penalty", (*place, "fusion", "grounding"))


def migrate_latency(tree: Tree) -> None:
    """Conditions on latency became the algorithm latency_aware, which is the same only where the condition had to hold anyway (under AND)."""
    rules: dict[str, Mapping] = {}
    for _, routing in tree.routings():
        signals = routing.get("signals")
        if isinstance(signals, MutableMapping):
            rules |= {str(rule.get("name")): rule for rule in items(signals.get("latency"))}
    for path, decision in tree.decisions():
        _latency_decision(tree, decision, path, rules)
    for path, routing in tree.routings():
        signals = routing.get("signals")
        if isinstance(signals, MutableMapping) and "latency" in signals and not _names_latency(routing):
            tree.drop(signals, "latency", (*path, "signals"), "latency is no signal; the algorithm latency_aware reads it")


def _latency_decision(tree: Tree, decision: Mapping, path: Path, rules: dict[str, Mapping]) -> None:
    tree_of_rules = decision.get("rules")
    found = [(place, leaf) for place, leaf in _leaves(tree_of_rules, (*path, "rules")) if leaf.get("type") == "latency"]
    if not found:
        return
    top = tree_of_rules if isinstance(tree_of_rules, MutableMapping) else {}
    conjoined = str(top.get("operator") or "AND").upper() == "AND" and "conditions" in top
    for place, leaf in found:
        rule = rules.get(str(leaf.get("name")), {})
        settings = {key: rule[key] for key in ("tpot_percentile", "ttft_percentile") if rule.get(key)}
        if not conjoined or leaf not in items(top.get("conditions")) or not settings or decision.get("algorithm"):
            tree.open(place, "a condition on latency that is not one of several under AND has no equal; use the algorithm latency_aware")
            continue
        top["conditions"].remove(leaf)
        decision["algorithm"] = CommentedMap(type="latency_aware", latency_aware=CommentedMap(settings))
        tree.done(place, "a condition on latency is the algorithm latency_aware now")
    if conjoined and not top.get("conditions"):
        remove(decision, "rules")


def _names_latency(routing: Mapping) -> bool:
    return any(leaf.get("type") == "latency" for decision in items(routing.get("decisions")) for _, leaf in _leaves(decision.get("rules"), ()))


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Mapping]]:
    if not isinstance(node, MutableMapping):
        return
    if "type" in node:
        yield path, node
    for index, child in enumerate(items(node.get("conditions"))):
        yield from _leaves(child, (*path, "conditions", index))
