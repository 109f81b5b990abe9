"""Settings that must be there before torch is imported, in this process and in the servers that tests start."""

from __future__ import annotations

import os

# Most matrices of the tests are tiny: a second thread only waits, and OpenMP threads that spin while they wait starve
# whatever else runs on the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
