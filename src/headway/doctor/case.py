"""One case: everything a rule may read. Facts are joined on first use and kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.facts.allocator import OutOfMemory, out_of_memory_of
from headway.doctor.facts.device import Device, device_of
from headway.doctor.facts.exceptions import Exceptions, exceptions_of
from headway.doctor.facts.launch import Launch, launch_of
from headway.doctor.facts.load import LoadSample, load_of
from headway.doctor.facts.memory import MemoryFacts, memory_of
from headway.doctor.facts.model import Model, model_of
from headway.doctor.facts.requests import RequestRow, requests_of
from headway.doctor.facts.startup import Startup, startup_of


class Case:
    """`log` and `context` are the evidence; the rest is derived from them and never anything else."""

    def __init__(self, log: Log, context: Context) -> None:
        self.log = log
        self.context = context

    @cached_property
    def launch(self) -> Launch:
        """Which program runs which model with which flags."""
        return launch_of(self.log, self.context)

    @cached_property
    def startup(self) -> Startup:
        """How far the start came."""
        return startup_of(self.log)

    @cached_property
    def memory(self) -> MemoryFacts:
        """Sizes of memory, weights and cache that were printed or collected."""
        return memory_of(self.log, self.context, self.launch)

    @cached_property
    def out_of_memory(self) -> Sequence[OutOfMemory]:
        """Every message of an allocator without memory, in the order of the log."""
        return out_of_memory_of(self.log)

    @cached_property
    def model(self) -> Model:
        """How large the model is and how it is quantised, by its files, its configuration and its name."""
        return model_of(self.context, self.launch)

    @cached_property
    def device(self) -> Device:
        """What is computed on."""
        return device_of(self.log, self.context, self.launch)

    @cached_property
    def load(self) -> Sequence[LoadSample]:
        """Samples of load in time order, from statistics lines or from metrics."""
        return load_of(self.log, self.context)

    @cached_property
    def requests(self) -> Sequence[RequestRow]:
        """Requests with their timings, where a table or the context has them."""
        return requests_of(self.log, self.context)

    @cached_property
    def exceptions(self) -> Exceptions:
        """Final lines of tracebacks, per process, umbrellas set apart."""
        return exceptions_of(self.log)
