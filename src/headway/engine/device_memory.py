"""Memory of the device that keeps the weights and the cache."""

from __future__ import annotations

import torch

from headway.host.memory_budget import MemoryBudget, memory_budget, process_rss


def device_memory(device: torch.device) -> tuple[MemoryBudget, int]:
    """What there is, and the bytes of it that are taken: by this process on a CPU, by all on a GPU."""
    if device.type == "cpu":
        return memory_budget(), process_rss()
    free, total = torch.cuda.mem_get_info(device)
    return MemoryBudget(total, total, free, torch.cuda.get_device_name(device)), total - free
