"""Every error a user can meet, as one tree.

An error carries a stable `reason` (a word that programs may match on), a sentence that names the thing, what was
expected and what was found, and the fix. HTTP statuses live in one table in `wire/errors.py`, not here.
"""

from __future__ import annotations


class HeadwayError(Exception):
    """Base of all errors that Headway raises on purpose.

    `reason` is stable; `param` names the request field, flag or file that is wrong; `fix` tells what to do.
    """

    reason = "internal_error"

    def __init__(self, message: str, *, reason: str | None = None, param: str | None = None, fix: str | None = None):
        super().__init__(message if fix is None else f"{message.rstrip('.')}. {fix}")
        self.reason = reason or type(self).reason
        self.param = param
        self.fix = fix

    @property
    def message(self) -> str:
        return str(self.args[0])


class RequestError(HeadwayError):
    """A request that is wrong in itself; refused before the engine sees it."""

    reason = "invalid_request"


class ContextLengthError(RequestError):
    """Prompt, or prompt plus what was asked for, does not fit the context."""

    reason = "context_length_exceeded"


class NotFoundError(HeadwayError):
    """A model or route that this server does not have."""

    reason = "not_found"


class QueueFullError(HeadwayError):
    """Admission refused: too many requests or tokens are waiting. Retry elsewhere or later."""

    reason = "queue_full"


class EngineDeadError(HeadwayError):
    """The engine core stopped; no request can be served until the process is restarted."""

    reason = "engine_dead"


class LaunchError(HeadwayError):
    """The nodes of a launch disagree, or one did not come: nothing was started."""

    reason = "launch_failed"


class RankError(HeadwayError):
    """One of the processes that compute a model together died, hung or cannot be reached: all requests that are open end with this."""

    reason = "rank_failed"

    def __init__(self, rank: int, host: str, why: str):
        super().__init__(f"rank {rank} on {host} failed: {why}", param=f"rank {rank}", fix="The log of that rank tells more.")
        self.rank, self.host, self.why = rank, host, why


class TransferError(HeadwayError):
    """KV blocks did not come from another engine, or did not get there."""

    reason = "kv_transfer_failed"


class StepError(HeadwayError):
    """The forward pass of this request raised; other requests go on."""

    reason = "step_failed"


class LogitsProcessorError(StepError):
    """A logits processor that was loaded at start failed on this request."""

    reason = "logits_processor_failed"


class DeadlineError(HeadwayError):
    """The time that the client, or the server's default, gives a request was over before its answer was complete."""

    reason = "deadline_exceeded"


class LoadingError(HeadwayError):
    """The model is still loading."""

    reason = "loading"


class AsleepError(HeadwayError):
    """The engine gave its memory back until somebody wakes it."""

    reason = "asleep"


class RestartingError(LoadingError):
    """A rank failed, and the model is being loaded again."""

    reason = "restarting"


class ConfigError(HeadwayError):
    """A flag, variable or config value that cannot be used."""

    reason = "invalid_config"


class NotBuiltError(ConfigError):
    """A flag or field whose feature does not exist in this version. Never ignored silently."""

    reason = "not_built"


class ArtifactError(HeadwayError):
    """A model reference, file or download that cannot be used."""

    reason = "artifact_invalid"


class PackageError(ArtifactError):
    """The files of a model are damaged, unknown or not allowed; loading them again changes nothing."""

    reason = "package_refused"


class AdapterError(ArtifactError):
    """A LoRA adapter that cannot be used with this model."""

    reason = "adapter_invalid"


class CapacityError(HeadwayError):
    """Weights or KV cache do not fit the memory there is."""

    reason = "does_not_fit"


class PlacementError(CapacityError):
    """No device of this machine can run the model."""

    reason = "no_device"


class SelfCheckError(HeadwayError):
    """A model that was loaded does not answer as it should, and is not served."""

    reason = "self_check_failed"


class DoctorError(HeadwayError):
    """What the doctor was given cannot be read or reached."""

    reason = "doctor_input"
