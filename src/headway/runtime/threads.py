"""How many CPU threads forward passes use."""

from __future__ import annotations


def use_threads(threads: int | None) -> None:
    """So many CPU threads for the forward passes of all models together; None: all that the process may use."""
    import torch

    from headway.host.cpu_budget import cpu_budget

    torch.set_num_threads(threads or cpu_budget().threads)
