"""Reasons not to trust the scores, in the page's order."""

from collections.abc import Iterator, Sequence

from labelwise.base.text import counted, name_counts
from labelwise.corpus.import_checks import ImportCheck
from labelwise.corpus.warnings import MAX_NAMED_LABELS, ScoreWarning, warnings_about_excluded_labels
from labelwise.evaluate.scores import SEEN_REMEDY, Metrics, describe_seen
from labelwise.merge.checks import describe
from labelwise.merge.corpus_checks import MIN_TEST_TEXTS, NO_GOLD_IN_TEST, NOT_FULLY_ANNOTATED, SMALL_TEST
from labelwise.report.unanswered import Unanswered

MIN_UNSCORED = 0.01  # share of test texts with predictions that can't be scored, for a warning
MIN_HEAD = (0.1, 5)  # share and number of these for the first place among warnings


def is_much(part: int, texts: int) -> bool:
    """Return whether a number of test texts is worth the first line."""
    return part >= MIN_HEAD[0] * texts and part >= MIN_HEAD[1]


def warnings(
    metrics: Metrics, checks: Sequence[ImportCheck] = (), unanswered: Unanswered | None = None
) -> Iterator[ScoreWarning]:
    """Yield the reasons not to trust the scores; see `advise`."""
    if seen := describe_seen(metrics):
        yield ScoreWarning(f"{seen}.", f"{SEEN_REMEDY}.")
    yield from warnings_about_excluded_labels(metrics.excluded_labels)
    if short := [
        f"{label} ({result.figure} {result.bound:.3f})"
        for label, result in metrics.goals.items()
        if result.bound < result.goal
    ]:
        listed, rest = ", ".join(short[:MAX_NAMED_LABELS]), " …" if short[MAX_NAMED_LABELS:] else ""
        sentence = f"{counted(len(short), 'label')} can't reach the goal on dev. At best: {listed}{rest}."
        yield ScoreWarning(sentence, "Annotate more texts, or lower the goal.")
    without_gold = [label for label, scores in metrics.all_gold.labels.items() if not scores.support]
    if metrics.texts < MIN_TEST_TEXTS:
        yield _describe(ImportCheck(kind=SMALL_TEST, n=metrics.texts))
    if without_gold:
        yield _describe(ImportCheck(kind=NO_GOLD_IN_TEST, values={"labels": without_gold}))
    texts = unanswered.total if unanswered else 0
    head = is_much(texts, metrics.texts)
    unscored = [_warn_unscored(metrics, unanswered)] if unanswered and texts >= MIN_UNSCORED * metrics.texts > 0 else []
    yield from unscored if head else []
    for check in checks:
        excluded_labels = check.kind == NOT_FULLY_ANNOTATED and {*check.values["labels"]} <= {*metrics.excluded_labels}
        if not excluded_labels and check.kind not in (SMALL_TEST, NO_GOLD_IN_TEST):
            yield _describe(check)
    yield from [] if head else unscored


def _describe(check: ImportCheck) -> ScoreWarning:
    sentence, remedy, lines = describe(check)
    return ScoreWarning(sentence, " ".join([remedy, *(f"`{line}`" for line in lines)]))


def _warn_unscored(metrics: Metrics, unanswered: Unanswered) -> ScoreWarning:
    """Warn about predictions that can't be scored, with texts of the most frequent labels."""
    texts, absent = [], dict[str, list[str]]()  # labels that a dataset may not have, by dataset
    for label, n in unanswered.unscored.most_common(MAX_NAMED_LABELS):
        places = unanswered.places.get(label, [])
        rest = f" and {n - len(places):,} more" if n > len(places) else ""
        listed = f"{', '.join(place.name for place in places)}{rest}" if places else counted(n, "test text")
        texts.append(f"{label}: {listed}")
        for dataset in sorted({place.dataset for place in places if place.lacks}):
            absent.setdefault(dataset, []).append(label)
    remedy = f"Annotate in full for {'; '.join(texts)}."
    if absent:
        never = "; ".join(f"{dataset}: {', '.join(labels)}" for dataset, labels in absent.items())
        remedy += f" If labels never occur in a dataset, declare them `absent` in its entry in datasets.yml: {never}."
    unscored, labels = counted(metrics.unscored, "prediction"), name_counts(unanswered.unscored, MAX_NAMED_LABELS)
    sentence = f"{unscored} in {counted(unanswered.total, 'test text')} can't be scored"
    return ScoreWarning(f"{sentence}: these aren't fully annotated for {labels}.", remedy)
