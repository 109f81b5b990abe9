"""Words that the guard knows: English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

DENIALS = frozenset(
    """not cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt mustnt havent hasnt hadnt aint""".split()  # noqa: SIM905
)
"""Negations that only deny: they are counted, and it does not matter where they stand (`doesn't it work`, `does it not work`)."""

NEGATIONS = DENIALS | frozenset(
    """no never none neither nor nothing nobody nowhere without except unless exclude excluding avoid stop fail fails failed unable""".split()  # noqa: SIM905
)
CHINESE_NEGATIONS = "不没別别无無勿未莫非否"
CHINESE_QUESTIONS = (  # a verb with its own negation asks and denies nothing: 是不是, 能不能, 有没有
    r"(.)[不没](\1)|可不可以|能否|是否|与否"
)

_PAIRS = """on/off open/close opened/closed enable/disable enabled/disabled start/stop begin/end increase/decrease increasing/decreasing raise/lower
up/down upload/download add/remove insert/delete create/delete show/hide lock/unlock allow/deny allow/block accept/reject include/exclude
true/false yes/no before/after above/below over/under in/out inside/outside internal/external import/export encode/decode encrypt/decrypt
encryption/decryption compress/decompress install/uninstall mount/unmount login/logout connect/disconnect push/pull read/write send/receive
buy/sell ascending/descending first/last min/max minimum/maximum more/less most/least many/few high/low higher/lower highest/lowest big/small
bigger/smaller large/small long/short longer/shorter fast/slow faster/slower hot/cold old/new older/newer early/late left/right north/south
east/west with/without same/different safe/unsafe safe/dangerous legal/illegal possible/impossible valid/invalid public/private inbound/outbound
incoming/outgoing input/output source/target sender/receiver win/lose gain/lose profit/loss cheap/expensive good/bad best/worst better/worse
love/hate like/dislike always/never all/none asynchronous/synchronous async/sync client/server male/female husband/wife mother/father
advantages/disadvantages pros/cons benefits/risks cause/effect question/answer lend/borrow teach/learn prefix/suffix upgrade/downgrade
increment/decrement expand/collapse online/offline manual/automatic positive/negative odd/even horizontal/vertical forward/backward entry/exit
subscribe/unsubscribe follow/unfollow attach/detach pause/resume activate/deactivate grant/revoke freeze/thaw load/save load/unload"""

OPPOSITES: tuple[tuple[str, str], ...] = tuple((first, second) for pair in _PAIRS.split() for first, second in [pair.split("/")])

_CHINESE_PAIRS = """打开/关闭 打开/关掉 开启/关闭 开灯/关灯 启用/禁用 启动/停止 开始/结束 增加/减少 提高/降低 上升/下降 上传/下载 添加/删除 新增/删除 显示/隐藏 锁定/解锁
允许/禁止 允许/拒绝 接受/拒绝 同意/拒绝 包含/排除 登录/登出 登录/退出 连接/断开 安装/卸载 导入/导出 编码/解码 加密/解密 压缩/解压 输入/输出 买/卖 买入/卖出 升序/降序
最大/最小 最多/最少 最高/最低 最快/最慢 最早/最晚 之前/之后 以前/以后 上面/下面 里面/外面 内部/外部 左/右 东/西 南/北 大/小 多/少 高/低 快/慢 长/短 新/旧 早/晚 冷/热 好/坏
优点/缺点 好处/坏处 利/弊 合法/非法 安全/危险 公开/私有 同步/异步 在线/离线 正数/负数 奇数/偶数 借出/借入 男/女 丈夫/妻子 父亲/母亲 暂停/继续 订阅/退订 关注/取关 收入/支出 存款/取款"""

CHINESE_OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (first, second) for pair in _CHINESE_PAIRS.split() for first, second in [pair.split("/")]
)

FILLERS = frozenset(
    """a about actually also am an and any are as ask be been being but by can could dear did do does doing every explain for from get give given
    had has have hello help hey hi how i id ill im is it its ive just kindly know let lets like look may me might mine my need of okay on one or
    our ours out please question quick really shall should show so some something steps tell thank thanks that the their them then there these
    they this those to try us very want was way ways we well were what whats when where which while who whom whose why will with wonder
    wondering would you your yours""".split()  # noqa: SIM905
)
"""Words that may come and go without a text meaning something else. Prepositions that turn a meaning round are among the opposites too."""

ORDER_WORDS = frozenset({"from", "to", "than", "by", "of", "for"})
ARTICLES = frozenset({"a", "an", "the", "this", "that", "my", "your", "our", "their", "its"})

CHINESE_FILLERS = (
    "请问", "请", "麻烦", "帮我", "帮忙", "我想知道", "想知道", "告诉我", "给我", "我想", "一下", "怎么样", "怎么", "怎样", "如何", "什么", "为什么",
    "可不可以", "能不能", "我", "能否", "可以", "的", "了", "吗", "呢", "啊", "吧", "呀", "是", "您好", "你好", "谢谢",
)  # fmt: skip

FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": frozenset("the is are of and to in what how do does for with this that can i you my".split()),  # noqa: SIM905
    "de": frozenset("der die das ist sind und ein eine wie was ich nicht mit für von zu den dem auf kann".split()),  # noqa: SIM905
    "fr": frozenset("le la les est sont et un une comment que quelle quel je ne pas avec pour de du des dans puis".split()),  # noqa: SIM905
    "es": frozenset("el la los las es son y un una cómo como qué que cuál yo no con para de del en puedo mi".split()),  # noqa: SIM905
    "it": frozenset("il lo la gli le è sono e un una come che quale io non con per di del della in posso mio".split()),  # noqa: SIM905
    "pt": frozenset("o a os as é são e um uma como que qual eu não com para de do da em posso meu".split()),  # noqa: SIM905
    "nl": frozenset("de het een is zijn en hoe wat ik niet met voor van te in kan mijn".split()),  # noqa: SIM905
}
