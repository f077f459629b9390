"""Fuzz one target in this process, by Atheris, which is libFuzzer for Python: it looks for inputs that reach new code.

The arguments are the target's name, libFuzzer's options, and the folder of the corpus.
"""

import json
import sys
from functools import lru_cache, partial

import atheris

with atheris.instrument_imports(include=["labelwise"]):
    from tests.fuzz.mutate import mutated
    from tests.fuzz.seeds import SEEDS
    from tests.fuzz.targets import TARGETS

import spacy
from spacy.language import Language
from srsly._msgpack_api import msgpack_decoders, msgpack_encoders

SHARED = 5000  # inputs that share a vocabulary, whose words pile up


def main() -> None:
    """Fuzz until an input breaks a promise, or the number of runs is reached."""
    name = sys.argv.pop(1)
    target = TARGETS[name]
    blank = spacy.blank
    inputs = 0

    @lru_cache(maxsize=1)
    def make(lang: str, config: str, number: int) -> Language:
        return blank(lang, config=json.loads(config))

    def run(data: bytes) -> None:
        nonlocal inputs
        inputs += 1
        target.run(data)

    def change(data: bytes, most: int, seed: int) -> bytes:
        return mutated(target.change, data, seed, partial(_mutate, most), head=target.head, most=most)

    # Either takes longer than reading a small file: making a pipeline, and asking all packages for encoders.
    spacy.blank = lambda lang, config=None: make(lang, json.dumps(config or {}), inputs // SHARED)  # type: ignore
    msgpack_encoders.entry_points = msgpack_decoders.entry_points = False
    # What is made once, such as a tokenizer, takes seconds, and isn't what an input takes.
    for seed in SEEDS[name]():
        target.run(seed)
    atheris.Setup(sys.argv, run, custom_mutator=change)
    atheris.Fuzz()


def _mutate(most: int, data: bytes) -> bytes:
    return atheris.Mutate(data, most)


if __name__ == "__main__":
    main()
