"""Read and batch a whole epoch as training does: `python -m benchmarks.read_epoch CORPUS`.

Memory that grows with the texts would grow here, too, and sooner than with a model.
"""

from pathlib import Path
from typing import Annotated

import typer
from spacy.training.batchers import configure_minibatch_by_words

from labelwise.corpus.pipeline import bounded_vocab
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.train.reader import PartitionedCorpus, example_maker, read_batches


def main(corpus: Annotated[Path, typer.Argument(help="Merged corpus")]) -> None:
    """Read, and print the number of texts."""
    nlp = make_nlp(*read_tokenizer(corpus / "tokenizer.json"))
    reader = PartitionedCorpus(corpus / "train", shuffle=True)
    batcher = configure_minibatch_by_words(size=2000, tolerance=0.2, discard_oversize=False)
    batches, make_example = 0, example_maker(nlp)
    for batch in read_batches(reader, batcher, 1):
        with bounded_vocab(nlp):
            batches += bool(list(map(make_example, batch.texts)))
    print(f"{reader.counts['texts']:,} texts in {batches:,} batches; {len(nlp.vocab.strings):,} strings are known")


if __name__ == "__main__":
    typer.run(main)
