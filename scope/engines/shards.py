"""Several processes, one store: torchrun or accelerate starts them, each takes its share of the batches.

No results travel between them. All write to the same SQLite file, so hosts need a shared file system whose
locks work; without one, give each host an output_dir and a part of the pool.
"""

import contextlib
import os
from collections.abc import Iterator

from scope.engines.base import EngineError

_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def shard() -> tuple[int, int]:
    """(number of this process, number of processes), from RANK and WORLD_SIZE."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this is the process that writes what a stage makes."""
    return shard()[0] == 0


def local_rank() -> int:
    """Number of this process on its host."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def barrier() -> None:
    """Wait until every process of the launch is here, however long the slowest takes."""
    if shard()[1] == 1:
        return
    if "MASTER_ADDR" not in os.environ or "MASTER_PORT" not in os.environ:
        raise EngineError(
            "WORLD_SIZE is set without MASTER_ADDR and MASTER_PORT, so the processes cannot wait for each other; "
            "start them with torchrun or accelerate launch"
        )
    from datetime import timedelta

    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo", timeout=timedelta(days=7))
    dist.barrier()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hide the launcher's variables from a library that would take them for its own."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name in _LAUNCHER or "TORCHELASTIC" in name}
    try:
        yield
    finally:
        os.environ.update(hidden)
