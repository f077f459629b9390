"""Write a demo corpus, to try everything without data of one's own."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from wasabi import msg

from labelwise.demo import DemoDoc, count_words, make_doc, write_brat, write_prodigy
from labelwise.demo_grammar import LABELS
from labelwise.errors import InputError
from scripts.console import progress, user_errors

Format = Literal["brat", "prodigy"]


def make_demo_cli(
    out: Annotated[Path, typer.Argument(help="Folder to write to; an earlier demo corpus there is replaced.")],
    format: Annotated[
        Format, typer.Option(help="brat (OUT/DOMAIN/*.txt, *.ann) or prodigy (OUT/LABEL.jsonl).")
    ] = "brat",
    docs: Annotated[int, typer.Option(help="Number of documents.")] = 400,
    labels: Annotated[int, typer.Option(help=f"Number of labels, 1 to {len(LABELS)}.")] = len(LABELS),
    words: Annotated[int | None, typer.Option(help="Words and marks in each, about; else 100 to 300.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is random; document N depends on it and on N alone.")] = 0,
) -> None:
    """Write a demo corpus of texts from nine domains, annotated with up to twenty labels."""
    with user_errors("No demo corpus was made"):
        counts = make_demo(out, format=format, docs=docs, labels=labels, words=words, seed=seed)
    msg.good(f"Wrote {out}", ", ".join(f"{count:,} {what}" for what, count in counts.items()))


def make_demo(
    out: Path,
    *,
    format: Format = "brat",
    docs: int = 400,
    labels: int = len(LABELS),
    words: int | None = None,
    seed: int = 0,
) -> Counter[str]:
    """Write a demo corpus.

    labels (int): how many labels to annotate, the first of `labelwise.demo_grammar.LABELS`.
    words (int | None): about how many in each document; None for 100 to 300.
    RETURNS (Counter[str]): "documents", "words", "spans" and "discontinuous" made; not all of them fit Prodigy.
    RAISES (InputError): an argument is out of range, or something else than a demo corpus lies in the folder.
    """
    if not 1 <= labels <= len(LABELS):
        raise InputError(f"--labels {labels}: must be 1 to {len(LABELS)}")
    if docs < 1:
        raise InputError(f"--docs {docs}: must be 1 or more")
    if words is not None and words < 1:
        raise InputError(f"--words {words}: must be 1 or more")
    chosen = LABELS[:labels]
    counts: Counter[str] = Counter()

    def make_docs() -> Iterator[DemoDoc]:
        for index in progress(range(docs), "make", docs):
            doc = make_doc(index, seed=seed, labels=chosen, words=words)
            counts["documents"] += 1
            counts["words"] += count_words(doc.text)
            counts["spans"] += len(doc.spans)
            counts["discontinuous"] += len(doc.discontinuous)
            yield doc

    if format == "brat":
        write_brat(make_docs(), out)
    else:
        write_prodigy(make_docs(), chosen, out)
    return counts


if __name__ == "__main__":
    typer.run(make_demo_cli)
