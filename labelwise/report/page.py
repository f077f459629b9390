"""Make a pipeline's report: one HTML page that needs neither network nor other files.

`results` reads the outputs of merge, training and evaluation, `review_queue` the findings of a check; `advice` decides,
and the template escapes and shows. Equal results give equal bytes.
"""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from labelwise import __version__
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, locked
from labelwise.base.sections import VarsSection
from labelwise.base.settings import read_section
from labelwise.base.text import MAX_CONTEXT_CHARS, SpanKey, counted, figure
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.train_curve import read_train_curve
from labelwise.corpus.answers import read_answers
from labelwise.corpus.import_checks import ImportCheck, read_checks
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import is_corpus
from labelwise.corpus.pipeline import read_value
from labelwise.evaluate.ranking import DEFAULT_TARGET_F1, MAX_BORDERLINE, MIN_TEST_SPANS, RankedLabel, group_by_verdict
from labelwise.evaluate.results import load_results
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import Tables
from labelwise.merge.checks import KINDS as CHECKS
from labelwise.report.advice import PREDICT, UNKNOWN, Advice, Steps, advise
from labelwise.report.annotators import read_annotators
from labelwise.report.charts import list_charts, list_tradeoffs
from labelwise.report.forecasts import (
    FOLDER,
    Changes,
    Forecast,
    forecast,
    measure_seconds,
    say_hours,
    score_of,
    update_forecasts,
)
from labelwise.report.mistakes import KINDS, REASONS, describe_pairs, divide, divide_missed
from labelwise.report.review_queue import ReviewQueue, read_review_queue
from labelwise.report.unanswered import find_unanswered

CURVE = "metrics/train_curve.json"
MAX_MISTAKES = 1000  # different ones on a page
MAX_CHANGES = 300  # fixed or new errors
MAX_PAIRS = 3  # confused pairs of labels
format_score = partial(figure, form=".2f", none="–")


class Baseline(NamedTuple):
    """An earlier evaluation to compare with.

    decided (int): cases decided since.
    changed (Sequence): errors fixed or new since.
    """

    name: str
    metrics: Metrics
    decided: int = 0
    changed: Sequence[ChangedSpan] = ()
    common: Changes = MappingProxyType({})


def write_report(
    root: Path | str,
    pipeline: str,
    out: Path | str,
    *,
    baseline: Baseline | None = None,
    target_f1: float = DEFAULT_TARGET_F1,
    annotators: bool = False,
) -> Advice:
    """Write the report of a pipeline as an HTML page, and its forecasts.

    target_f1 (float): minimum lower bound of a ready label's F1 interval.
    annotators (bool): name annotators, and their hours.
    RETURNS (Advice): with hours.
    RAISES (InputError): if nothing was evaluated, a file is malformed, or another process is writing the page.
    """
    root, out = Path(root), Path(out)
    if not 0 <= target_f1 <= 1:
        raise InputError(f"target_f1 {target_f1}: give a share, from 0 to 1")
    results, queue = load_results(root, pipeline), read_review_queue(root)
    metrics, tables, corpus = results.metrics, results.tables, root / "corpus"
    estimate, sample = queue.estimate(), len(queue.sample())
    advice = advise(
        metrics,
        results.curve,
        pipeline,
        target_f1,
        queue.counts,
        results.merge,
        checks=list_checks(corpus, people=annotators),
        sample=0 if estimate else sample,
        shares=estimate.shares if estimate else UNKNOWN,
        steps=read_steps(root, pipeline),
        unanswered=find_unanswered(tables._replace(split=metrics.split), corpus) if tables else None,
        tried=[file.stem for file in (root / "metrics").glob("*.json")],
    )
    learning = read_train_curve(root / CURVE, metrics.pipeline_digest)
    cases_of = {"": sample} | {label: counts.total() for label, counts in queue.counts.items()}
    forecasts = [forecast(task, metrics, results.merge, cases_of, learning) for task in advice.tasks]
    seconds = measure_seconds(corpus) if any(forecasts) and is_corpus(corpus) else {}
    timed = add_notes(advice, forecasts, results.merge, seconds)
    advice = timed if annotators else add_notes(advice, forecasts, results.merge, {})  # hours are a person's pace
    written: list[Forecast] = []
    if metrics.pipeline_digest and not advice.blocked:
        file, common = root / FOLDER / f"{pipeline}.jsonl", baseline.common if baseline else {}
        written = update_forecasts(file, list(filter(None, forecasts)), metrics, results.merge, common)
    split, learned = metrics.to_learn
    if tables and metrics.split:  # tables of 0.3.0 have one split
        tables = tables._replace(split=split)
    cards = list_cards(advice, metrics, tables, queue, baseline, people=annotators)
    name_texts(cards["mistakes"], cards["changed"], corpus, pipeline)
    tradeoffs = list_tradeoffs(tables, metrics) if tables else []
    template = make_environment().get_template("report.html.jinja")
    page = template.render(
        results._asdict(),
        pipeline=pipeline,
        split=split,
        learned=learned,
        advice=advice,
        outcomes=[row for row in written if row.by == metrics.pipeline_digest and row.interval],
        held=[row.held for row in written if row.held is not None],
        target_f1=target_f1,
        verdicts=group_by_verdict(row for row, _ in advice.rows),
        figures=list_figures(advice, metrics, results.merge, baseline),
        bar=divide(metrics),
        missed=divide_missed(metrics),
        confused=describe_pairs(metrics)[:MAX_PAIRS],
        estimate=estimate,
        sample=sample,
        more=want_texts(advice),
        baseline=baseline,
        queue=queue,
        listed=sum(row["listed"] for row in cards["cases"]),
        cards=cards,
        people=read_annotators(corpus) if annotators else [],
        learning=learning,
        charts=[*list_charts(results.curve, learning), *tradeoffs],
        texts_per_100=count_texts_per_100(tables) if tables else {},
    )
    content = page.encode()
    with locked(out):  # a killed run's lock file goes, too
        changed_page = not out.is_file() or out.read_bytes() != content
    if changed_page:  # its time tells when it has changed
        with atomic(out) as [path]:
            path.write_bytes(content)
    return timed


def list_cards(
    advice: Advice,
    metrics: Metrics,
    tables: Tables | None,
    queue: ReviewQueue,
    baseline: Baseline | None,
    *,
    people: bool,
) -> dict[str, Any]:
    """List what the page's script shows: cases, errors, and changes since the baseline."""
    cases = queue.choose({row.label: row.total for row, _ in advice.rows if row.verdict != "ready"})
    for answer in (answer for case in cases for answer in case["answers"].values() if not people):
        answer["annotator"] = ""
    return {
        "cases": cases,
        "mistakes": list_mistakes(tables) if tables else [],
        "gold": [row.label for row, _ in advice.rows if row.mistakes.gold],
        "split": metrics.to_learn[0],
        "baseline": baseline.name if baseline else "",
        "changed": list_changed(baseline.changed) if baseline else [],
        "kinds": {name: kind.name for name, kind in KINDS.items()},
        "reasons": {cause: reason.name for cause, reason in REASONS.items()},
        "around": MAX_CONTEXT_CHARS,
    }


def add_notes(
    advice: Advice, forecasts: Sequence[Forecast | None], merge: Ledger, seconds: Mapping[frozenset[str], float]
) -> Advice:
    """Add cost and gain to tasks."""
    tasks = []
    for task, one in zip(advice.tasks, forecasts, strict=True):
        labels = [one.label] if one and one.label else merge.labels
        hours = say_hours(seconds, labels, one.asked) if one and one.task == "texts" else ""
        tasks.append(task._replace(note=one.describe(hours)) if one else task)
    return advice._replace(tasks=tasks)


def list_checks(corpus: Path, *, people: bool) -> list[ImportCheck]:
    """List a corpus's import checks; with `people`, also those that name annotators."""
    checks = read_checks(corpus) if is_corpus(corpus) else []
    return [check for check in checks if people or not CHECKS[check.kind].people]


def read_steps(root: Path, pipeline: str) -> Steps:
    """Read the steps of a project and of a pipeline's configs; refuse a malformed project.yml."""
    project, config = root / "project.yml", root / "configs" / f"{pipeline}.cfg"
    asked = read_section(project if project.is_file() else None, "vars", VarsSection, others=True).steps
    most = read_value(config, "training", "max_steps") or 0
    least = (read_value(config, "labelwise", "least_steps") or 0) if read_value(config, "labelwise", "epochs") else most
    trained = read_value(root / "training" / pipeline / "model-best" / "config.cfg", "training", "max_steps") or 0
    return Steps(asked, min(least, most), most, trained)


@cache  # compiling the templates takes longer than filling them
def make_environment() -> Environment:
    """Create a template environment, once per process, that escapes all values, and refuses unknown names."""
    environment = Environment(
        loader=PackageLoader("labelwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {
        "score": format_score,
        "number": "{:,}".format,
        "share": format_share,
        "address": lambda labels: f"#{urlencode([('label', label) for label in labels])}",
        "counted": counted,
        "json": json_in_page,
    }
    environment.globals |= {
        "version": __version__,
        "close": MAX_BORDERLINE,
        "few": MIN_TEST_SPANS,
        "hash_of": hash_of,
        "kinds": KINDS,
        "reasons": REASONS,
        "import_decisions": "python -m scripts.import_decisions ~/Downloads/decisions.jsonl",
        "export": "python -m scripts.export training/raw.jsonl to-annotate --format",
    }
    return environment


def json_in_page(content: Any) -> Markup:
    """Encode JSON without <, which could end its element."""
    encoded = msgspec.json.encode(content).replace(b"<", b"\\u003c").decode()
    return Markup(encoded)  # noqa: S704  has no < in it


def hash_of(text: str) -> str:
    """Compute the hash of an inline script for a content security policy (CSP, level 2)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(str(text).encode("utf8")).digest()).decode("ascii")


def format_share(share: float) -> str:
    """Format a share in percent; only 0 is 0%, and only 1 is 100%."""
    if 0 < share < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < share < 1 else f"{share:.0%}"


def want_texts(advice: Advice) -> list[RankedLabel]:
    """List labels whose next step is more texts, by missed spans that texts would teach."""
    rows = [row for row, step in advice.rows if step.command == PREDICT]
    return sorted(rows, key=lambda row: -sum(row.mistakes.causes.get(cause, 0) for cause in ("unseen", "seen")))


class Figures(NamedTuple):
    """A column of the table of labels.

    cells (list): by label, sort key or None, text, and note.
    """

    head: str
    cells: list[tuple[float | None, str, str]]


def list_figures(advice: Advice, metrics: Metrics, merge: Ledger, baseline: Baseline | None) -> list[Figures]:
    """List the table's columns for labels with gold, without columns of equal cells."""
    rows = [row for row, _ in advice.rows if row.scores.support]
    agreement = merge.agreement

    def column(head: str, values: Iterable[Any], form: Callable[[Any], str]) -> Figures:
        return Figures(head, [(value, form(value), "") for value in values])

    columns = []
    if baseline:
        changes = [measure_change(row, baseline.metrics) for row in rows]
        columns.append(column(f"Since {baseline.name}", changes, format_change))
    if metrics.goals:
        goals = [metrics.goals.get(row.label) for row in rows]
        goal_cells = [(one.value, f"{one.figure} {one.goal}", str(one)) if one else (None, "–", "") for one in goals]
        columns.append(Figures("Goal, test", goal_cells))
    if metrics.all_spans:
        flat = [metrics.shown(row.label, metrics.all_gold).f for row in rows]
        columns.append(column("F1 entities", flat, format_score))
    if agreement:
        agreed = [agreement.get(row.label, Counter()) for row in rows]
        agreement_cells = [(one["f"], counted(one["texts"], "text")) if one else (None, "") for one in agreed]
        columns.append(Figures("Annotators agree", [(f, format_score(f), texts) for f, texts in agreement_cells]))
    train = merge.gold.get("train", Counter())
    columns += [
        column("Test spans", [row.scores.support or 0 for row in rows], "{:,}".format),
        column("Train spans", [train[row.label] for row in rows], "{:,}".format),
        column("Texts", [merge.labels.get(row.label, Counter())["complete"] for row in rows], "{:,}".format),
        column("P", [row.scores.p for row in rows], format_score),
        column("R", [row.scores.r for row in rows], format_score),
    ]
    return [one for one in columns if len(rows) == 1 or len({cell[1:] for cell in one.cells}) > 1]


def measure_change(row: RankedLabel, before: Metrics) -> float | None:
    """Compute a label's change of F1; None without both scores."""
    old = score_of(before, row.label)
    return None if old is None or row.scores.f is None else row.scores.f - old


def format_change(change: float | None) -> str:
    """Format a difference of F1."""
    return "–" if change is None else "=" if change == 0 else f"{change:+.3f}"


def name_texts(
    mistakes: Sequence[dict[str, Any]], changed: Sequence[dict[str, Any]], corpus: Path, pipeline: str
) -> None:
    """Name texts without a document by file and line, in place; without a corpus, they keep their digests.

    A wrong prediction with a probability gets the command that explains it.
    """
    keys = {row["key"] for row in mistakes} | {row["text"] for row in changed}
    places = read_answers(corpus, keys) if keys and is_corpus(corpus) else ()
    names = {key: answers[0].of(None) for key, answers in places if answers}
    for row in mistakes:
        explained = row.pop("probability") is not None and row["key"] in names
        at, name = str(row.pop("predicted_start")), names.get(row["key"], "")
        asked = ["python", "-m", "scripts.why", "corpus", name, "--predicted", pipeline, "--at", at]
        row["why"] = shlex.join(asked) if explained else ""
        row["doc"] = row["doc"] or names.get(row["key"], row["key"])
    for row in changed:
        row["text"] = names.get(row["text"], row["text"])


def count_texts_per_100(tables: Tables) -> dict[str, float]:
    """Estimate by label how many complete texts have 100 gold spans."""
    texts, elsewhere, spans = 0, Counter[str](), Counter[str]()
    for group, pairs in tables.groups(("key", "partial", "unknown"), ("key", "gold_label")):
        uncovered = {row["key"]: {*row["partial"], *row["unknown"]} for row in group.to_pylist()}
        texts += len(uncovered)
        elsewhere.update(label for labels in uncovered.values() for label in labels)
        gold = ((row["key"], row["gold_label"]) for row in pairs.to_pylist())
        spans.update(label for key, label in gold if label and label not in uncovered[key])
    return {label: 100 * (texts - elsewhere[label]) / n for label, n in spans.items()}


def first_of_each(rows: Sequence[Any], names: Iterable[Collection[Any]], most: int) -> list[Any]:
    """Choose `most` rows, the first ones of each name, in order.

    names (Iterable): one or more names by row.
    """
    seen = Counter[Any]()
    ranks = []
    for number, names_of_row in enumerate(names):
        seen.update(names_of_row)
        ranks.append((min(seen[name] for name in names_of_row), number))
    return [rows[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def list_changed(changed: Sequence[ChangedSpan]) -> list[dict[str, Any]]:
    """List errors fixed or new; of too many, the first of each label."""
    names = ([(span.label, span.change)] for span in changed)
    return [span._asdict() for span in first_of_each(changed, names, MAX_CHANGES)]


def list_mistakes(tables: Tables) -> list[dict[str, Any]]:
    """List errors, equal words once, most frequent first; of too many, the first of each label."""
    names = ["kind", "gold_label", "predicted_label", "gold_text", "predicted_text"]
    places = [f"{side}_{end}" for side in ("gold", "predicted") for end in ("start", "end")]
    others = ["probability", "cause", "doc", "before", "after", "annotated", "unannotated", "otherwise", "other_label"]
    rows = tables.read_pairs([*names, *places, *others, "key"], pc.field("kind").isin([*KINDS]))
    rows = rows.append_column("place", pa.array(range(len(rows))))
    groups = rows.group_by(names).aggregate([([], "count_all"), ("place", "min")])
    groups = groups.sort_by([("count_all", "descending"), ("place_min", "ascending")]).to_pylist()
    labels = ({group["gold_label"], group["predicted_label"]} - {None} for group in groups)
    chosen = first_of_each(groups, labels, MAX_MISTAKES)
    mistakes = rows.take(pa.array([group["place_min"] for group in chosen], pa.int64())).to_pylist()
    gold: dict[str, list[SpanKey]] = {}
    columns = ["key", "gold_start", "gold_end", "gold_label"]
    keys = pc.field("key").isin(pa.array([row["key"] for row in mistakes], pa.string()))
    for row in tables.read_pairs(columns, keys & pc.field("gold_label").is_valid()).to_pylist():
        gold.setdefault(row["key"], []).append((row["gold_start"], row["gold_end"], row["gold_label"]))
    for row, group in zip(mistakes, chosen, strict=True):
        about, other = ([row.pop(f"{side}_{end}") for end in ("start", "end")] for side in ("gold", "predicted"))
        row["predicted_start"] = other[0]
        start, end = row["span"] = about if row["gold_label"] else other
        first, last = start - len(row["before"]), end + len(row["after"])
        spans = (span for span in gold.get(row["key"], ()) if span[0] < last and first < span[1])
        row["others"] = [(one - start, two - start, label) for one, two, label in spans if [one, two] != [start, end]]
        row["count"] = group["count_all"]
        del row["place"]
    return mistakes
