"""Set environment variables that numpy and spaCy read when they are loaded."""

import os
import sys

# numpy and OpenBLAS read these to choose code for a processor, which decides how products are rounded.
KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "NPY_DISABLE_CPU_FEATURES")
# Packages that spaCy's tokenizers need, and spaCy doesn't require, by the name of the tokenizer, or of the segmenter.
TOKENIZERS = {
    "spacy.ja.JapaneseTokenizer": ("sudachipy", "sudachidict_core"),
    "spacy.ko.KoreanTokenizer": ("natto-py",),
    "spacy.th.ThaiTokenizer": ("pythainlp",),
    "spacy.vi.VietnameseTokenizer": ("pyvi",),
    "jieba": ("jieba",),
}
GPU_ENVIRONMENT = "the environment of `make gpu`"


def configure() -> None:
    """Prepare this process and its children for a command, before numpy is loaded."""
    # Stages of a clone depend on folders of its code. Weasel's checksum of a folder covers `__pycache__`: if a command
    # wrote bytecode there, each stage that shares the folder would run again.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # for processes that are spawned
    # Products of matrices by one thread (numpy reads this when it is loaded): their rounding, and so a trained
    # pipeline, would depend on the number of threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Hugging Face's packages send usage data by default.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Colors are for terminals (https://no-color.org): spaCy's printer reads this when it is imported.
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        os.environ["ANSI_COLORS_DISABLED"] = "1"
