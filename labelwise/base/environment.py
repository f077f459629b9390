"""The environment of a command: variables that numpy and spaCy read when they are loaded.

A config with `portable = true` asks for the same results, to the byte, on every x86-64-v3 processor. OpenBLAS and numpy
choose code for the processor that they find, and so decide in which order products are added, and how they are
rounded. A command looks into the config that it is given before numpy is loaded, and the processes that it starts
inherit the choice.

https://github.com/OpenMathLib/OpenBLAS/blob/develop/docs/runtime_variables.md
https://numpy.org/doc/stable/reference/simd/build-options.html
"""

import os
import platform
import sys
from collections.abc import Iterable
from configparser import ConfigParser, Error
from pathlib import Path

from labelwise.base.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
DISABLED = "NPY_DISABLE_CPU_FEATURES"
# The groups of instructions beyond x86-64-v3, by numpy's names; before 2.4 it had the last ones, too.
BEYOND_V3 = "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_KNL AVX512_KNM"
KERNELS = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1", DISABLED: BEYOND_V3}
V3 = {"X86_V3", "AVX2"}  # numpy's name for x86-64-v3; before 2.4, for a part of it
REMEDY = "set portable = false in the config"
# Packages that spaCy's tokenizers need, and spaCy doesn't require, by the name of the tokenizer, or of the segmenter.
TOKENIZERS = {
    "spacy.ja.JapaneseTokenizer": ("sudachipy", "sudachidict_core"),
    "spacy.ko.KoreanTokenizer": ("natto-py",),
    "spacy.th.ThaiTokenizer": ("pythainlp",),
    "spacy.vi.VietnameseTokenizer": ("pyvi",),
    "jieba": ("jieba",),
}
GPU_ENVIRONMENT = "the environment of `make gpu`, or in an installed project labelwise's extra `gpu`"


def configure() -> None:
    """Prepare this process, and those that it starts, for a command; numpy isn't loaded yet."""
    # Stages of a clone depend on folders of its code. Weasel's checksum of a folder covers `__pycache__`: if a command
    # wrote bytecode there, each stage that shares the folder would run again.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for processes that are spawned
    choose_kernels(sys.argv[1:])
    # Products of matrices by one thread (numpy reads this when it is loaded): their rounding, and so a trained
    # pipeline, would depend on the number of threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Hugging Face's packages tell what they are used for, unless they are told not to.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Colours are for terminals (https://no-color.org): spaCy's printer reads this when it is imported.
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        os.environ["ANSI_COLORS_DISABLED"] = "1"


def is_portable(config: Path) -> bool:
    """Return whether a config, such as that of a trained pipeline, has `portable = true` in [labelwise].

    One that can't be read asks for nothing: whoever needs more of it refuses it.
    """
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(config, encoding="utf8")
    except (Error, OSError, UnicodeDecodeError):
        return False
    return parser.get("labelwise", "portable", fallback="") == "true"


def choose_kernels(arguments: Iterable[str]) -> None:
    """Set the environment if a config among a command's arguments, or in a pipeline's folder, asks for it."""
    paths = [Path(argument.rpartition("=")[2]) for argument in arguments]
    configs = [path if path.suffix == ".cfg" else path / "config.cfg" for path in paths]
    if any(map(is_portable, configs)):
        os.environ.update(KERNELS)


def require_portable(config: Path) -> None:
    """Check that this process computes as on every x86-64-v3 processor, if a config asks for it.

    RAISES (InputError): it doesn't.
    """
    if not is_portable(config):
        return
    import numpy as np

    groups = np.show_config(mode="dicts")["SIMD Extensions"]
    used = {*groups.get("baseline", ()), *groups.get("found", ())}
    if not V3 & used:
        raise InputError(f"portable: this processor ({platform.machine()}) isn't an x86-64-v3 one; {REMEDY}")
    if set(BEYOND_V3.split()) & used or any(os.environ.get(name) != value for name, value in KERNELS.items()):
        raise InputError(f"portable: numpy was loaded before {', '.join(KERNELS)} were set; run the command by itself")


def command_line(name: str) -> str:
    """Return how a command is called: `labelwise update-dvc`, or in a clone `python -m scripts.update_dvc`."""
    in_clone = (ROOT / "scripts" / f"{name}.py").is_file()
    return f"python -m scripts.{name}" if in_clone else f"labelwise {name.replace('_', '-')}"
