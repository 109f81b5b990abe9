"""Whether a base model that lies beside an adapter may run where the adapter was placed: nobody looked at it before."""

from __future__ import annotations

from headway.errors import PlacementError
from headway.quantization.stored_format import stored_format
from headway.runtime.loading.capabilities import sentence
from headway.runtime.readers.package_tensors import PackageTensors


def check_base(tensors: PackageTensors, device: str) -> None:
    """Raises PlacementError (`lacks_capability`) for weights whose arithmetic a CPU does not have."""
    needs = stored_format(tensors.infos.values()).needs
    if needs and device == "cpu":
        raise PlacementError(f"cpu: {sentence(needs[0])} (the base model in {tensors.source})", reason="lacks_capability", param="base_path")
