"""L2 and L3: the model is there, but may not be fetched (gated, private), or wants to run its own code."""

from __future__ import annotations

import re
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import STATED, Fix, Found
from headway.doctor.rules.loading.model_folder import hub_id, model_files
from headway.doctor.rules.loading.nearest_name import nearest_known, with_known_owner
from headway.doctor.rules.loading.outcome import of_the_model_runtime, overcome
from headway.doctor.rules.quoted import quoted
from headway.doctor.rules.rule import Rule
from headway.doctor.words import Words

GATED: Final = sight(
    "GatedRepoError",
    "Cannot access gated repo",
    "trying to access a gated repo",
    "[hub_gated]",
    "access needs accepted terms",
    "not in the authorized list",
    "is restricted and you are not in",
)
RESTRICTED: Final = sight("Access to model", pattern=r"Access to model (?P<name>[\w.\-]+/[\w.\-]+) is restricted")
PENDING: Final = sight(
    "awaiting a review",
    "has been rejected by the repo's authors",
    pattern=r"(?:awaiting a review|(?P<rejected>has been rejected))",
)
BAD_TOKEN: Final = sight(
    "Invalid user token",
    "Invalid credentials in Authorization header",
    "[hub_token_refused]",
    "Invalid username or password",
    "the token is wrong or has expired",
)
FINE_GRAINED: Final = sight(
    "fine-grained token", "[hub_forbidden]", pattern=r"gated repositories in your fine-grained token|\[hub_forbidden\]"
)
DENIED: Final = sight(
    "401 Client Error",
    "403 Client Error",
    pattern=r"(?P<status>401|403) Client Error\b(?:.*?for url: (?P<url>https?://\S+))?",
)
PRIVATE: Final = sight("RepositoryNotFoundError: 401", "[hub_unauthorized]", "Repository Not Found for url")
CUSTOM_CODE: Final = sight(
    "contains custom code which must be executed",
    "requires you to execute the configuration file in that repo",
    "requires to execute some code in that repo",
    "to allow custom code to be run",
    "If the model is a custom model not yet available",
    "[remote_code]",
    pattern=r"(?:(?<![\w.\-/])(?P<name>[\w.\-/]{1,200}) (?:contains custom code which must be executed|requires you to execute the \w+ file|requires to execute some code in that repo)|to allow custom code to be run|If the model is a custom model not yet available|\[remote_code\])",
)


def may_not_be_fetched(case: Case) -> Found | None:
    """A statement of the hub about access; a bare 401 of a hub URL counts as well, a 401 of a chat server does not."""
    hit = case.log.first(GATED, RESTRICTED, PENDING, BAD_TOKEN, FINE_GRAINED) or _bare_denial(case)
    if hit is None or overcome(case, hit) or of_the_model_runtime(case):
        return None
    name = _model(case, hit)
    denial = case.log.first(DENIED)
    status = denial["status"] if denial else ""
    token = "HF_TOKEN" if case.context.text("env.HF_TOKEN") else ""
    pending, bad, narrow = case.log.first(PENDING), case.log.first(BAD_TOKEN), case.log.first(FINE_GRAINED)
    answered = Words(f" (the hub answered {status})", f"（模型库返回 {status}）") if status else Words("", "")
    who = (
        Words("no token was sent", "请求没有带令牌")
        if not token and status != "403"
        else Words("the account of the token in use has no access", "当前令牌所属账号没有权限")
    )
    if pending is not None and pending["rejected"]:
        why = Words(
            f"The owners of {name} have rejected this account's request for access{answered.en}",
            f"{name} 的所有者拒绝了该账号的访问申请{answered.zh}",
        )
        fixes = [
            Fix(Words("use a model whose terms are open, or ask its owners", "改用条款开放的模型，或联系其所有者")),
            _LOG_IN,
        ]
    elif pending is not None:
        why = Words(
            f"Access to {name} was requested and is still awaiting a review by its owners{answered.en}; until then every token is refused",
            f"已申请访问 {name}，仍在等待所有者审核{answered.zh}；在此之前任何令牌都会被拒绝",
        )
        fixes = [
            Fix(
                Words(
                    "wait until the owners approve the request (the page of the model shows its state), or accept the terms of another model; then log in with that account",
                    "等待所有者批准（模型页面会显示状态），或改用另一个模型并接受其条款；然后用该账号登录",
                ),
                "hf auth login",
            )
        ]
    elif bad is not None:
        why = Words(
            f"The hub refused the token for {name}{answered.en}: it is wrong, expired or revoked",
            f"模型库拒绝了访问 {name} 的令牌{answered.zh}：令牌错误、过期或已被撤销",
        )
        fixes = [
            Fix(
                Words(
                    "make a new read token of the account that has accepted the terms, and log in with it (or set HF_TOKEN to it)",
                    "用已接受条款的账号新建读取令牌，并用它登录（或设为 HF_TOKEN）",
                ),
                "hf auth login",
            )
        ]
    else:
        why = Words(
            f"{name} is gated or private{answered.en}: its terms must be accepted by an account, and {who.en}",
            f"{name} 受限或私有{answered.zh}：需要有账号接受其条款，而{who.zh}",
        )
        fixes = [
            Fix(
                Words(
                    "accept the terms (request access) on the page of the model with your account",
                    "用你的账号在模型页面接受许可条款（申请访问）",
                )
            ),
            _LOG_IN,
        ]
        if narrow is not None:
            fixes.append(
                Fix(
                    Words(
                        "a fine-grained token also needs the permission to read public gated repositories: switch it on in the settings of the token",
                        "细粒度令牌还需在令牌设置中开启“读取公开受限仓库”的权限",
                    )
                )
            )
    return Found(
        cause=Words(f"{why.en}.", f"{why.zh}。"),
        evidence=quoted(hit, pending, bad, denial)
        + ([case.context.quote("env.HF_TOKEN")] if "HF_TOKEN" in case.context.members("env") else []),
        fixes=fixes,
        verify=Words(
            f"`hf auth whoami` names that account, and `hf download {name} config.json` succeeds",
            f"`hf auth whoami` 显示该账号，且 `hf download {name} config.json` 成功",
        ),
        confidence=STATED if case.log.sees(GATED, RESTRICTED, PENDING, BAD_TOKEN, FINE_GRAINED) else 0.75,
        explains=("L1", "L6", "N4"),
    )


_LOG_IN: Final = Fix(
    Words(
        "log in with that account where the server runs, or pass its token as HF_TOKEN (in a container: -e HF_TOKEN)",
        "在服务器运行处用该账号登录，或把其令牌作为 HF_TOKEN 传入（容器：-e HF_TOKEN）",
    ),
    "hf auth login",
)


def _bare_denial(case: Case) -> Hit | None:
    """A 401 or 403 for a file of a repository. A name that is nearly a known one is L1's: the hub also answers 401 for
    names that do not exist."""
    name = hub_id(case)
    if name and (nearest_known(name, map(str, case.context.items("model.cached"))) or with_known_owner(name)):
        return None
    if hit := case.log.first(PRIVATE):
        denial = case.log.first(DENIED)
        return hit if denial is not None or "401" in hit.line.text or "[hub_" in hit.line.text else None
    return next((hit for hit in case.log.hits(DENIED) if re.search(r"/(?:resolve|api/models|raw)/", hit["url"])), None)


def _model(case: Case, hit: Hit) -> str:
    if restricted := case.log.first(RESTRICTED):
        return restricted["name"]
    if name := hub_id(case):
        return name
    for denial in case.log.hits(DENIED):
        if found := re.search(r"https?://[^/]+/(?:api/models/)?([\w.\-]+/[\w.\-]+)", denial["url"]):
            return found[1]
    return case.launch.model or "the model"


def wants_its_own_code(case: Case) -> Found | None:
    """The loader stopped because it would have to import Python files of the repository."""
    hit = case.log.first(CUSTOM_CODE)
    if hit is None or overcome(case, hit) or of_the_model_runtime(case):
        return None
    name = (hit["name"] or hub_id(case) or case.launch.model).rstrip("/.")
    code = [file for file in model_files(case) if file.name.endswith(".py")]
    listed = ", ".join(
        f"{file.name} ({file.nbytes:,} B)" if file.nbytes is not None else file.name for file in code[:4]
    )
    files = Words(f" ({listed})", f"（{listed}）") if listed else Words("", "")
    return Found(
        cause=Words(
            f"{name} has no class in this version and brings custom Python code{files.en} that would be executed with all rights of the server process. Do not simply switch"
            " trust_remote_code on: read the code first, and note that a branch may change under you.",
            f"{name} 在当前版本中没有对应的类，自带自定义 Python 代码{files.zh}，执行时拥有服务器进程的全部权限。不要直接打开 trust_remote_code：先阅读代码，并注意分支内容随时可能变化。",
        ),
        evidence=[hit.quote(), *(case.context.quote(f"{file.path}.name") for file in code[:2])],
        fixes=[
            Fix(
                Words(
                    "look for a native class first: a newer engine or transformers may support this architecture without custom code",
                    "先找原生支持：更新的引擎或 transformers 可能无需自定义代码即可支持该架构",
                ),
                "pip install -U vllm transformers",
            ),
            Fix(
                Words("else review the custom code", "否则审阅自定义代码"),
                f'hf download {name} --include "*.py" --local-dir review'
                if "/" in name and not name.startswith("/")
                else f"grep -n 'import\\|exec\\|eval\\|open(' {name}/*.py",
            ),
            Fix(
                Words(
                    "then run exactly the commit that was reviewed (--revision and --code-revision with its 40 digits), isolated in a container without network and secrets",
                    "然后只运行审阅过的那个提交（--revision 与 --code-revision 填其 40 位提交号），并隔离在没有网络和机密的容器中",
                )
            ),
        ],
        verify=Words(
            "it loads without executing code of the repository (the log has no `trust_remote_code=True`), or only the reviewed commit is executed",
            "无需执行仓库代码即可加载（日志中没有 `trust_remote_code=True`），或只执行审阅过的提交",
        ),
        confidence=STATED,
        explains=("L4", "L5", "L6"),
    )


RULES: Final = (
    Rule(
        id="L2",
        title=Words("Gated or private model", "受限或私有模型"),
        symptoms=Words(
            "401 or 403 of the hub, `Cannot access gated repo`, `awaiting a review`",
            "模型库返回 401 或 403，`Cannot access gated repo`、`awaiting a review`",
        ),
        why=Words(
            "the account has not accepted the terms, or no valid token of it reaches the process",
            "账号没有接受条款，或进程没有拿到它的有效令牌",
        ),
        needs=Words("whether a token is set, and whose", "是否设置了令牌，属于谁"),
        remedy=Words(
            "accept the terms with that account, then `hf auth login` or HF_TOKEN",
            "用该账号接受条款，然后 `hf auth login` 或设置 HF_TOKEN",
        ),
        check=Words("`hf auth whoami`, and config.json downloads", "`hf auth whoami`，并能下载 config.json"),
        judge=may_not_be_fetched,
        sees=(GATED, RESTRICTED, PENDING, BAD_TOKEN, FINE_GRAINED, DENIED, PRIVATE),
    ),
    Rule(
        id="L3",
        title=Words("The model wants to run its own code", "模型要求执行自带代码"),
        symptoms=Words(
            "`contains custom code which must be executed`", "`contains custom code which must be executed`"
        ),
        why=Words(
            "the architecture has no class in this version; the repository brings Python files instead",
            "当前版本没有该架构的类，仓库自带 Python 文件",
        ),
        needs=Words("the Python files of the repository", "仓库中的 Python 文件"),
        remedy=Words(
            "a native architecture; else read the code, pin the revision, isolate",
            "使用原生架构；否则阅读代码、固定版本、隔离运行",
        ),
        check=Words("it loads without trust_remote_code", "不用 trust_remote_code 也能加载"),
        judge=wants_its_own_code,
        sees=(CUSTOM_CODE,),
    ),
)
