"""Gold spans that have no token boundaries: spaCy's own tokenizer against the project's.

python -m benchmarks.tokenizer assets/wnut2020_wlp/train assets/litbank assets/materials_syntheses
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measure import write_result
from labelwise.corpus.tokenizer import TokenizerRules, make_nlp, read_rules
from labelwise.sources.brat import find_documents, read_document


def count_lost(folder: Path, rules: TokenizerRules, lang: str = "en") -> tuple[int, int, int]:
    """Count the spans of a brat folder that aren't made of whole tokens, all its spans, and its tokens."""
    nlp = make_nlp(lang, rules)
    lost = spans = tokens = 0
    for stem in find_documents(folder):
        document = read_document(stem, folder)
        if document.text is not None:
            doc = nlp.make_doc(document.text)
            tokens += len(doc)
            spans += len(document.mentions)
            lost += sum(doc.char_span(mention.start, mention.end) is None for mention in document.mentions)
    return lost, spans, tokens


def main(folders: Annotated[list[Path], typer.Argument(help="Brat folders, in English")]) -> None:
    """Write a row for each folder."""
    rows = []
    for folder in folders:
        stock, spans, stock_tokens = count_lost(folder, TokenizerRules())
        ours, _, tokens = count_lost(folder, read_rules(Path("project.yml")))
        name = folder.as_posix().removeprefix("assets/")
        rows.append((name, spans, stock / spans, ours / spans, tokens / stock_tokens - 1))
    columns = {"corpus": "", "spans": ",", "lost by spaCy's tokenizer": ".2%", "lost by the project's": ".2%"}
    write_result("tokenizer", {**columns, "more tokens": ".1%"}, rows)


if __name__ == "__main__":
    typer.run(main)
