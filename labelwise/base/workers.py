"""Choose the number of processes."""

from labelwise.base.console import msg
from labelwise.base.parallel import count_cores
from labelwise.base.text import counted


def choose_workers(workers: int, gpu_id: int = -1) -> int:
    """Return the number of processes: one on a GPU; warn if there are more than cores."""
    if gpu_id >= 0 and workers > 1:
        msg.info(f"One process uses GPU {gpu_id}; workers = {workers} is for the CPU")
        return 1
    if workers > (cores := count_cores()):
        sentence = f"{workers} workers share {counted(cores, 'core')}, and wait for each other"
        msg.warn(sentence, f"Write workers: {cores} in project.yml, or --workers {cores}")
    return workers
