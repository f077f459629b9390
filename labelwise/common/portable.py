"""The same results, to the byte, on every x86-64-v3 processor.

OpenBLAS and numpy choose code for the processor that they find, and what is chosen decides in which order products are
added, and so how they are rounded. They read what to choose from the environment, when they are loaded: so a process
that should be portable starts itself anew.

https://github.com/OpenMathLib/OpenBLAS/blob/develop/docs/runtime_variables.md
https://numpy.org/doc/stable/reference/simd/build-options.html
"""

import os
import platform
import sys
from pathlib import Path

import numpy as np

from labelwise.common.errors import InputError

KERNELS = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"}
DISABLED = "NPY_DISABLE_CPU_FEATURES"
REMEDY = "set portable = false in the config"
V3 = {"X86_V3", "AVX2"}  # what numpy calls it; before 2.4, by its parts


def _simd() -> set[str]:
    """List the groups of instructions that numpy makes use of in this process."""
    groups = np.show_config(mode="dicts")["SIMD Extensions"]
    return {*groups.get("baseline", ()), *groups.get("found", ())}


def beyond_v3() -> list[str]:
    """List those that an x86-64-v3 processor needn't have."""
    return sorted(name for name in _simd() if name == "X86_V4" or name.startswith("AVX512"))


def is_portable() -> bool:
    """Tell whether this process computes as one on every x86-64-v3 processor does."""
    kernels = all(os.environ.get(name) == value for name, value in KERNELS.items())
    return kernels and bool(V3 & _simd()) and not beyond_v3()


def obey(config: Path) -> None:
    """Make this process portable if a config, such as that of a trained pipeline, has `portable = true` in [labelwise].

    One that can't be read is for those to refuse who need more of it.
    RAISES (InputError): what `make_portable` raises.
    """
    from spacy.util import load_config  # takes seconds, and nothing else here needs it

    try:
        section = load_config(config, interpolate=False).get("labelwise", {})
    except (OSError, ValueError):
        return
    if section.get("portable") is True:
        make_portable()


def make_portable() -> None:
    """Start this process anew, with the same arguments, unless it is portable.

    RAISES (InputError): this isn't an x86-64-v3 processor, or numpy can't be told what to use.
    """
    if is_portable():
        return
    if not V3 & _simd():
        raise InputError(f"portable: this processor ({platform.machine()}) isn't an x86-64-v3 one; {REMEDY}")
    disabled = os.environ.get(DISABLED, "").split()
    if again := [name for name in beyond_v3() if name in disabled]:
        raise InputError(f"portable: numpy uses {', '.join(again)}, although {DISABLED} names it; {REMEDY}")
    sys.stdout.flush()
    environment = {**os.environ, **KERNELS, DISABLED: " ".join([*disabled, *beyond_v3()])}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606  our own command line
