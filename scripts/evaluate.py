"""Evaluate a trained pipeline on a split of the corpus, label by label."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from spacy.language import Language
from spacy.tokens import Doc
from wasabi import msg

from labelwise.device import use_gpu
from labelwise.errors import InputError
from labelwise.manifest import check_whole
from labelwise.output import staged
from labelwise.reader import read_docs
from labelwise.scoring import count_docs
from labelwise.tokenizer import MAX_LENGTH
from scripts.console import print_table, progress, user_errors

Option = typer.Option


def evaluate_cli(
    model: Annotated[Path, typer.Argument(help="Folder of a trained pipeline")],
    split: Annotated[Path, typer.Argument(help="Split of a merged corpus, such as corpus/test")],
    metrics: Annotated[Path, typer.Argument(help="JSON file for the scores")],
    speed: Annotated[Path | None, Option(help="JSON file for words a second, which varies")] = None,
    gpu_id: Annotated[int, Option(help="Number of the GPU; -1 for the CPU")] = -1,
    batch_size: Annotated[int, Option(help="Texts a batch")] = 16,
) -> None:
    """Evaluate a trained pipeline on a split of the corpus, label by label."""
    with user_errors("Nothing was evaluated"):
        scores, rate = evaluate(model, split, gpu_id=gpu_id, batch_size=batch_size)
        for path, content in ((metrics, scores), (speed, rate)):
            if path:
                with staged(path) as file:
                    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf8")
    print_scores(scores)
    words, texts = rate["words"], scores["texts"]
    msg.good(f"F {scores['all_gold']['f']:.4f} against all gold, on {texts:,} texts of {words:,} words")
    msg.info(f"Pipeline: {model}, for spacy.load. Scores: {metrics}. {rate['words_per_second']:,} words a second")


def evaluate(
    model: Path, split: Path, *, gpu_id: int = -1, batch_size: int = 16
) -> tuple[dict[str, Any], dict[str, int]]:
    """Evaluate a pipeline; Docs are streamed, so memory doesn't grow with their number.

    RETURNS (tuple): scores, the same for equal inputs, and speed.
    RAISES (InputError): there is no model, no partition, or no such GPU.
    """
    use_gpu(gpu_id)
    if not (model / "meta.json").is_file():
        raise InputError(f"{model}: no trained pipeline; run the training first")
    check_whole(split.parent)
    nlp = spacy.load(model)
    nlp.max_length = MAX_LENGTH
    texts = words = 0
    start = time.perf_counter()

    def pairs() -> Iterator[tuple[Doc, Doc]]:
        nonlocal texts, words
        for predicted, gold in predict(nlp, split, batch_size):
            texts += 1
            words += len(predicted)
            yield predicted, gold

    against_all, against_flat = count_docs(pairs())
    seconds = time.perf_counter() - start
    labels = sorted(set(nlp.get_pipe("ner").labels) | set(against_all.gold))  # type: ignore[attr-defined]
    scores = {"texts": texts, "all_gold": against_all.scores(labels), "flat_gold": against_flat.scores(labels)}
    return scores, {"words_per_second": round(words / seconds), "words": words}


def predict(nlp: Language, split: Path, batch_size: int) -> Iterator[tuple[Doc, Doc]]:
    """Yield (predicted, gold) for each Doc of a split; the pipeline gets nothing but the text."""
    golds = progress(read_docs(split, nlp), "evaluate")
    yield from nlp.pipe(((nlp.make_doc(gold.text), gold) for gold in golds), as_tuples=True, batch_size=batch_size)


def print_scores(scores: dict[str, Any]) -> None:
    """Print the scores of each label, and of all."""
    rows = []
    for name, all_gold in [*scores["all_gold"]["labels"].items(), ("all", scores["all_gold"])]:
        flat = scores["flat_gold"] if name == "all" else scores["flat_gold"]["labels"][name]
        rows.append([name, *(f"{all_gold[key]:.3f}" for key in "prf"), f"{flat['f']:.3f}", f"{all_gold['support']:,}"])
    print_table(["Label", "P", "R", "F", "F flat gold", "Support"], rows)


if __name__ == "__main__":
    typer.run(evaluate_cli)
