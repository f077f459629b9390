"""What does spaCy's vocabulary keep of words that it has forgotten?

    python -m benchmarks.forgotten_words

Texts of words that are all new are tokenized within memory zones, as the merge, training and prediction do it with what
goes beyond 30,000 words. A zone frees the words when it ends; the tables that they were looked up in keep their places.
"""

from typing import Annotated

import psutil
import spacy
import typer

WORDS = 5_000  # in a zone


def main(zones: Annotated[int, typer.Option(help="Zones, of 5,000 new words each")] = 800) -> None:
    """Tokenize, and print by how much the process has grown."""
    nlp = spacy.blank("en")
    process = psutil.Process()
    before = process.memory_full_info().uss
    print("| new words | words in the vocabulary | MB |\n|---|---|---|")
    for zone in range(zones):
        with nlp.memory_zone():
            nlp.make_doc(" ".join(f"zone{zone}word{number}" for number in range(WORDS)))
        if (zone + 1) % max(1, zones // 8) == 0:
            grown = (process.memory_full_info().uss - before) / 2**20
            print(f"| {(zone + 1) * WORDS:,} | {len(nlp.vocab.strings):,} | {grown:.0f} |")


if __name__ == "__main__":
    typer.run(main)
