"""What is built for the CPU only."""

from __future__ import annotations

from headway.errors import NotBuiltError
from headway.kernels.interface import Kernels


def refuse_other_devices(kernels: Kernels, what: str) -> None:
    """Raises NotBuiltError for kernels of another device, before weights are read."""
    if kernels.device.type != "cpu":
        raise NotBuiltError(
            f"{what} on {kernels.device} is not built", param="HEADWAY_KERNELS", fix="Leave HEADWAY_KERNELS out for the kernels of the CPU."
        )
