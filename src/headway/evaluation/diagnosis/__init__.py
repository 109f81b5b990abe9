"""Why a checkpoint is worse than it should be, found by trying."""
