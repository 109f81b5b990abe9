"""What guides say and is not so, with what is so: printed at the end of the troubleshooting guide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.words import Words


@dataclass(frozen=True, slots=True)
class Claim:
    said: Words
    true: Words


CLAIMS: Final = (
    Claim(
        Words("the tensor-parallel size must be a power of two", "张量并行数必须是 2 的幂"),
        Words("it must divide the number of attention heads: 3, 5 and 7 work where they divide", "它必须整除注意力头数：能整除时 3、5、7 都可以"),
    ),
    Claim(
        Words("an AWQ model needs `--quantization awq`", "AWQ 模型必须加 `--quantization awq`"),
        Words("the method is read from the checkpoint; the flag can only disagree with it", "量化方法从检查点读取；这个参数只可能与之冲突"),
    ),
    Claim(
        Words("the server listens on loopback unless told otherwise", "服务器默认只监听回环地址"),
        Words(
            "vLLM without `--host` listens on all interfaces; Headway and `vllm-srun` do listen on loopback",
            "vLLM 不加 `--host` 时监听所有网卡；Headway 和 `vllm-srun` 才默认监听回环地址",
        ),
    ),
    Claim(
        Words("FP8 needs an H100", "FP8 需要 H100"),
        Words(
            "FP8 arithmetic from compute capability 8.9 on (Ada, Hopper, Blackwell) and on MI300; weights alone in FP8 from 8.0 on",
            "计算能力 8.9 起（Ada、Hopper、Blackwell）和 MI300 有 FP8 运算；仅权重 FP8 从 8.0 起可用",
        ),
    ),
    Claim(
        Words("speculative decoding costs 2 to 3 % of accuracy", "投机解码会损失 2–3% 准确率"),
        Words("it preserves the distribution of the answers; only speed can suffer", "它保持输出分布不变；可能变差的只有速度"),
    ),
    Claim(
        Words("raise the temperature when a quantized model is worse", "量化后质量下降时提高采样温度"),
        Words("quality comes from format and calibration; compare at temperature 0", "质量取决于格式与校准；应在温度 0 下比较"),
    ),
    Claim(
        Words("switch prefix caching and chunked prefill on", "需要开启前缀缓存和分块预填充"),
        Words("both are on by default", "两者默认已开启"),
    ),
    Claim(
        Words("metrics are on port 9090", "指标在 9090 端口"),
        Words("that is Prometheus itself; the server's own port serves `/metrics`, the router's are on 9190", "那是 Prometheus 自身的端口；服务器在自己的端口提供 `/metrics`，路由器在 9190"),
    ),
    Claim(
        Words("`VLLM_USE_V1=1` makes it faster", "`VLLM_USE_V1=1` 更快"),
        Words("the variable was removed; there is one engine", "该变量已移除；只有一个引擎"),
    ),
    Claim(
        Words("`max_num_seqs` is 256 by default", "`max_num_seqs` 默认 256"),
        Words("it depends on the device: 256, 1024 on large cards, other values on CPUs", "取决于设备：256，大卡 1024，CPU 又不同"),
    ),
    Claim(
        Words("lower `--gpu-memory-utilization` against out of memory while loading", "加载时 OOM 就降低 `--gpu-memory-utilization`"),
        Words(
            "useful only if another process needs the memory; where no cache block fits (O1) it is the reverse",
            "只有别的进程需要显存时才有用；缓存块放不下（O1）时恰恰相反",
        ),
    ),
    Claim(
        Words("`NCCL_TIMEOUT=1800` gives NCCL more time", "`NCCL_TIMEOUT=1800` 可增大 NCCL 超时"),
        Words("NCCL has no such variable; the limit is `--distributed-timeout-seconds` (D11)", "NCCL 没有这个变量；应使用 `--distributed-timeout-seconds`（D11）"),
    ),
    Claim(
        Words("`RANK` and `WORLD_SIZE` make `vllm serve` a cluster", "设置 `RANK`、`WORLD_SIZE` 就能让 `vllm serve` 组成集群"),
        Words("`vllm serve` ignores them (D3): `--nnodes --node-rank --master-addr --master-port`, `--headless` on the others", "`vllm serve` 会忽略它们（D3）：使用 `--nnodes --node-rank --master-addr --master-port`，其余节点加 `--headless`"),
    ),
    Claim(
        Words("`pip install flash-attn`, or `--disable-flash-attn`", "`pip install flash-attn`，或 `--disable-flash-attn`"),
        Words("the package is not needed, and there is no such flag (L10)", "不需要这个包，也没有这个参数（L10）"),
    ),
    Claim(
        Words("`gpu_cache_usage_perc`, `--speculative-model`, `bench --input-tokens`", "`gpu_cache_usage_perc`、`--speculative-model`、`bench --input-tokens`"),
        Words(
            "old spellings: `kv_cache_usage_perc`, `--spec-model`, `--input-len`; Headway takes both and says the new name",
            "旧写法：现为 `kv_cache_usage_perc`、`--spec-model`、`--input-len`；Headway 两种都接受并提示新名称",
        ),
    ),
)
