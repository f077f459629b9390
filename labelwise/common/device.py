"""Choose the CPU or a GPU, and on the CPU what multiplies matrices.

On the CPU nearly all time goes into products of matrices. thinc has them done by BLIS, whose wheels carry generic
kernels; numpy's OpenBLAS chooses kernels for the processor that it finds. For Apple's processors thinc has its own.
"""

import thinc.api

from labelwise.common.errors import InputError


def use_gpu(gpu_id: int) -> None:
    """Use a GPU, or the CPU if the number is negative.

    RAISES (InputError): this machine, or this environment, can't use that GPU.
    """
    if gpu_id < 0:
        thinc.api.require_cpu()
        if type(thinc.api.get_current_ops()) is thinc.api.NumpyOps:
            thinc.api.set_current_ops(thinc.api.NumpyOps(use_blis=False))
        return
    try:
        thinc.api.require_gpu(gpu_id)
    except Exception as error:  # ValueError from thinc, others from CUDA's libraries
        raise InputError(
            f"GPU {gpu_id} can't be used: {error}. Is there one (nvidia-smi)? Is this the environment of `make gpu`? "
            "The CPU does the same, slowly: --gpu-id -1, or gpu_id: -1 in project.yml"
        ) from error


def device_name(gpu_id: int) -> str:
    """Name the GPU, or the CPU if the number is negative."""
    if gpu_id < 0:
        return "CPU"
    import cupy

    return cupy.cuda.runtime.getDeviceProperties(gpu_id)["name"].decode()
