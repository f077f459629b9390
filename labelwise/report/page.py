"""Make the report of a pipeline: one HTML page that needs neither network nor other files.

`results` reads what merge, training and evaluation have written, and `review_queue` the findings of a check; `advice`
decides what to do, and the template shows it. It escapes everything that comes from a corpus. Equal results make equal
bytes.
"""

import base64
import hashlib
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from configparser import ConfigParser, Error
from math import floor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from labelwise import __version__
from labelwise.base.errors import InputError
from labelwise.base.files import atomic, locked
from labelwise.base.sections import VarsSection
from labelwise.base.settings import read_section
from labelwise.base.text import MAX_CONTEXT_CHARS, SpanKey, counted
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.train_curve import TrainCurve, read_train_curve
from labelwise.corpus.answers import read_answers
from labelwise.corpus.import_checks import ImportCheck, read_checks
from labelwise.corpus.ledger import Ledger
from labelwise.corpus.manifest import is_corpus
from labelwise.evaluate.ranking import DEFAULT_TARGET_F1, MAX_BORDERLINE, MIN_TEST_SPANS, RankedLabel, group_by_verdict
from labelwise.evaluate.results import Curve, load_results
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import MISALIGNED, MISSED, Tables
from labelwise.merge.checks import KINDS as CHECKS
from labelwise.report.advice import KINDS, PREDICT, REASONS, Advice, Steps, advise, describe_pairs, divide
from labelwise.report.annotators import read_annotators
from labelwise.report.forecasts import FOLDER, Changes, Forecast, forecast, measure_seconds, say_hours, update_forecasts
from labelwise.report.review_queue import read_review_queue
from labelwise.report.unanswered import find_unanswered

CURVE = "metrics/train_curve.json"
MAX_MISTAKES = 1000  # different ones on a page, at most
MAX_CHANGES = 300  # errors that are fixed or new since the baseline
TRADEOFF = 20  # points of precision by recall
MAX_PAIRS = 3  # confused pairs of labels


class Baseline(NamedTuple):
    """An earlier evaluation that the page compares with.

    name (str): of the git revision.
    decided (int): cases decided since.
    changed (Sequence): errors that are fixed or new since.
    common (Mapping): changes of F1 on the test texts of both, by pipeline digest and label; see `settle`.
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
    """Write the report of a pipeline as an HTML page, and its forecasts; return what the page says.

    root (Path | str): the folder of the project.
    pipeline (str): its name, such as cpu.
    target_f1 (float): what the lower end of a label's interval of F1 must reach for it to be used.
    annotators (bool): name the people who annotated, though pages are sent around.
    RETURNS (Advice): with hours, which the page has only if it names people.
    RAISES (InputError): nothing was evaluated, a file isn't what it should be, or another process is writing the page.
    """
    root = Path(root)
    if not 0 <= target_f1 <= 1:
        raise InputError(f"target_f1 {target_f1}: give a share, from 0 to 1")
    out = Path(out)
    (metrics, merge, corpus, tables, curve, groups), queue = load_results(root, pipeline), read_review_queue(root)
    estimate, sample = queue.estimate(), queue.sample()
    known: dict[str, Any] = {"shares": estimate.shares} if estimate else {"sample": len(sample)}
    known["checks"] = list_checks(root / "corpus", people=annotators)
    known["steps"] = read_steps(root, pipeline)
    known["tried"] = [file.stem for file in (root / "metrics").glob("*.json")]
    known["unanswered"] = find_unanswered(tables, root / "corpus", metrics.split) if tables else None
    advice = advise(metrics, curve, pipeline, target_f1, queue.counts, merge, **known)
    cases = queue.choose({row.label: row.total for row, _ in advice.rows if row.verdict != "ready"})
    for answer in (answer for one in cases for answer in one["answers"].values() if not annotators):
        answer["annotator"] = ""
    learning = read_train_curve(root / CURVE, metrics.pipeline_digest)
    cases_of = {"": len(sample)} | {label: counts.total() for label, counts in queue.counts.items()}
    forecasts = [forecast(task, metrics, merge, cases_of, learning) for task in advice.tasks]
    seconds = measure_seconds(root / "corpus") if any(forecasts) and is_corpus(root / "corpus") else {}
    timed = add_notes(advice, forecasts, merge, seconds)
    advice = timed if annotators else add_notes(advice, forecasts, merge, {})  # hours tell somebody's pace
    written: list[Forecast] = []
    if metrics.pipeline_digest and not advice.blocked:
        new, file = [one for one in forecasts if one], root / FOLDER / f"{pipeline}.jsonl"
        written = update_forecasts(file, new, metrics, merge, baseline.common if baseline else {})
    split, learned = metrics.to_learn
    read = split if metrics.split else ""  # tables of 0.3.0 have one split
    mistakes, changed = (
        list_mistakes(tables, read) if tables else [],
        list_changed(baseline.changed) if baseline else [],
    )
    name_texts(mistakes, changed, root / "corpus", pipeline)
    template = make_environment().get_template("report.html.jinja")
    page = template.render(
        pipeline=pipeline,
        corpus=corpus,
        merge=merge,
        metrics=metrics,
        split=split,
        learned=learned,
        advice=advice,
        outcomes=[one for one in written if one.by == metrics.pipeline_digest and one.interval],
        held=[one.held for one in written if one.held is not None],
        target_f1=target_f1,
        close=MAX_BORDERLINE,
        few=MIN_TEST_SPANS,
        verdicts=group_by_verdict(row for row, _ in advice.rows),
        figures=list_figures(advice, metrics, merge, baseline),
        bar=divide(metrics),
        missed=divide_missed(metrics),
        confused=describe_pairs(metrics)[:MAX_PAIRS],
        estimate=estimate,
        sample=len(sample),
        more=want_texts(advice),
        groups=groups,
        baseline=baseline,
        queue=queue,
        listed=sum(one["listed"] for one in cases),
        cards={
            "cases": cases,
            "mistakes": mistakes,
            "gold": [row.label for row, _ in advice.rows if row.mistakes.gold],
            "split": split,
            "baseline": baseline.name if baseline else "",
            "changed": changed,
            "kinds": {kind: one.name for kind, one in KINDS.items()},
            "reasons": {reason: one.name for reason, one in REASONS.items()},
            "around": MAX_CONTEXT_CHARS,
        },
        people=read_annotators(root / "corpus") if annotators else [],
        learning=learning,
        charts=[*list_charts(curve, learning), *(list_tradeoffs(tables, metrics, read) if tables else [])],
        texts_per_100=count_texts_per_100(tables, read) if tables else {},
    )
    content = page.encode()
    with locked(out):  # a killed run's lock file goes, too
        changed_page = not out.is_file() or out.read_bytes() != content
    if changed_page:  # its time tells when it has changed
        with atomic(out) as [path]:
            path.write_bytes(content)
    return timed


def add_notes(
    advice: Advice, forecasts: Sequence[Forecast | None], merge: Ledger, seconds: Mapping[frozenset[str], float]
) -> Advice:
    """Add cost and gain to the tasks.

    forecasts (Sequence): of each task; None without one.
    seconds (Mapping): see `measure_seconds`; without it, no hours are said.
    """
    tasks = []
    for task, one in zip(advice.tasks, forecasts, strict=True):
        labels = [one.label] if one and one.label else merge.labels
        hours = say_hours(seconds, labels, one.asked) if one and one.task == "texts" else ""
        tasks.append(task._replace(note=one.describe(hours)) if one else task)
    return advice._replace(tasks=tasks)


def list_checks(corpus: Path, *, people: bool) -> list[ImportCheck]:
    """List what the import checks of a corpus found; nothing without a corpus.

    people (bool): include checks that name annotators.
    """
    checks = read_checks(corpus) if is_corpus(corpus) else []
    return [check for check in checks if people or not CHECKS[check.kind].people]


def read_steps(root: Path, pipeline: str) -> Steps:
    """Read how many steps a project asks for, and what a pipeline's configs say; 0 for what can't be read.

    RAISES (InputError): if project.yml isn't what it should be.
    """
    project, config = root / "project.yml", root / "configs" / f"{pipeline}.cfg"
    asked = read_section(project if project.is_file() else None, "vars", VarsSection, others=True).steps
    most = read_number(config, "training", "max_steps")
    least = read_number(config, "labelwise", "least_steps") if read_number(config, "labelwise", "epochs") else most
    trained = read_number(root / "training" / pipeline / "model-best" / "config.cfg", "training", "max_steps")
    return Steps(asked, min(least, most), most, trained)


def read_number(config: Path, section: str, key: str) -> int:
    """Read a number of a config; 0 if it isn't there, or can't be read."""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read(config, encoding="utf8")
        return parser.getint(section, key, fallback=0)
    except (Error, ValueError):
        return 0


def make_environment() -> Environment:
    """Create the environment of the template, which escapes all values, and refuses unknown names."""
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
        "hash_of": hash_of,
        "kinds": KINDS,
        "reasons": REASONS,
        "import_decisions": "python -m scripts.import_decisions ~/Downloads/decisions.jsonl",
        "export": "python -m scripts.export training/raw.jsonl to-annotate --format",
    }
    return environment


def json_in_page(content: Any) -> Markup:
    """Write JSON without <, which could end the element of the page that it is in."""
    encoded = msgspec.json.encode(content).replace(b"<", b"\\u003c").decode()
    return Markup(encoded)  # noqa: S704  has no < in it


def hash_of(text: str) -> str:
    """Compute the hash by which a page's policy allows this inline script alone (CSP, level 2)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(str(text).encode("utf8")).digest()).decode("ascii")


def format_share(share: float) -> str:
    """Write a share in percent, rounded to 0% or 100% only if it is."""
    if 0 < share < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < share < 1 else f"{share:.0%}"


def divide_missed(metrics: Metrics) -> dict[str, int]:
    """Divide the missed spans by their reason."""
    total = sum((Counter(one.causes) for one in metrics.to_learn[1].mistakes.values()), Counter[str]())
    found = {reason: total[reason] for reason in MISSED if reason != MISALIGNED}
    return found | {MISALIGNED: divide(metrics)["missed"] - sum(found.values())}


def want_texts(advice: Advice) -> list[RankedLabel]:
    """List the labels whose next step is more texts, by the missed spans that texts should teach, most first."""
    rows = [row for row, step in advice.rows if step.command == PREDICT]
    return sorted(rows, key=lambda row: -sum(row.mistakes.causes.get(cause, 0) for cause in ("unseen", "seen")))


class Figures(NamedTuple):
    """A column of the table of labels.

    cells (list): by label: value to sort by (None for none), text, note.
    """

    head: str
    cells: list[tuple[float | None, str, str]]


def list_figures(advice: Advice, metrics: Metrics, merge: Ledger, baseline: Baseline | None) -> list[Figures]:
    """List the columns behind the next steps, for labels with gold; one whose rows are all equal says nothing."""
    rows = [row for row, _ in advice.rows if row.scores.support]
    agreement = merge.agreement

    def shares(head: str, values: Iterable[float | None]) -> Figures:
        """Make a column of scores."""
        return Figures(head, [(value, format_score(value), "") for value in values])

    def numbers(head: str, values: Iterable[int]) -> Figures:
        """Make a column of counts."""
        return Figures(head, [(value, f"{value:,}", "") for value in values])

    columns = []
    if baseline:
        changes = [measure_change(row, baseline.metrics) for row in rows]
        columns.append(Figures(f"Since {baseline.name}", [(change, format_change(change), "") for change in changes]))
    if metrics.goals:
        goals = [metrics.goals.get(row.label) for row in rows]
        told = [(one.value, f"{one.figure} {one.goal}", str(one)) if one else (None, "–", "") for one in goals]
        columns.append(Figures("Goal, test", told))
    if metrics.all_spans:
        columns.append(shares("F1 entities", [metrics.shown(row.label, metrics.all_gold).f for row in rows]))
    if agreement:
        agreed = [agreement.get(row.label, Counter()) for row in rows]
        both = [(one["f"], counted(one["texts"], "text")) if one else (None, "") for one in agreed]
        columns.append(Figures("Annotators agree", [(f, format_score(f), texts) for f, texts in both]))
    train = merge.gold.get("train", Counter())
    columns += [
        numbers("Test spans", [row.scores.support or 0 for row in rows]),
        numbers("Train spans", [train[row.label] for row in rows]),
        numbers("Texts", [merge.labels.get(row.label, Counter())["complete"] for row in rows]),
        shares("P", [row.scores.p for row in rows]),
        shares("R", [row.scores.r for row in rows]),
    ]
    return [one for one in columns if len(rows) == 1 or len({cell[1:] for cell in one.cells}) > 1]


def measure_change(row: RankedLabel, before: Metrics) -> float | None:
    """Compute the difference of a label's F1 to earlier scores; None without one of them."""
    old = before.shown(row.label, before.judging(row.label)).f if row.label in before.all_gold.labels else None
    return None if old is None or row.scores.f is None else row.scores.f - old


def format_score(score: float | None) -> str:
    """Write a score with two digits."""
    return "–" if score is None else f"{score:.2f}"


def format_change(change: float | None) -> str:
    """Write a difference of F1."""
    return "–" if change is None else "=" if change == 0 else f"{change:+.3f}"


class Chart(NamedTuple):
    """A picture of F1 by something.

    title (str): what it shows, with its figures for those who don't see it.
    points (list): the places, in percent of the width from the left, and of the height from the top.
    low, high, last (str): the ends of the axis of F1, and that of the other one.
    """

    title: str
    points: list[tuple[float, float]]
    low: str
    high: str
    last: str


def list_charts(curve: Curve | None, learning: TrainCurve | None) -> list[Chart]:
    """Draw F1 on dev by step, and, after `train-curve`, by the number of texts."""
    charts = []
    if curve and curve.f:
        best = max(curve.f)
        title = f"F1 on dev by training step: {best:.3f} at best, at step {curve.steps[curve.f.index(best)]:,}"
        charts.append(draw_chart(title, curve.steps, curve.f, "steps"))
    if learning:
        shares = sorted((n, f) for share, n in learning.texts.items() if (f := learning.micro.f.get(share)) is not None)
        title = "F1 on dev by texts in train: " + ", ".join(f"{f:.3f} with {n:,}" for n, f in shares)
        charts += [draw_chart(title, [n for n, _ in shares], [f for _, f in shares], "texts")] if shares else []
    return charts


def draw_chart(title: str, along: Sequence[int], f: Sequence[float], unit: str) -> Chart:
    """Place F1 between the tenths around it, and what it depends on between 0 and the last."""
    high = min(1.0, floor(10 * max(f) + 1) / 10)
    low = min(floor(10 * min(f)) / 10, high - 0.1)
    points = [(100 * x / max(along), 100 * (high - y) / (high - low)) for x, y in zip(along, f, strict=True)]
    return Chart(title, points, f"{low:.1f}", f"{high:.1f}", f"{max(along):,} {unit}")


def list_tradeoffs(tables: Tables, metrics: Metrics, split: str) -> list[Chart]:
    """Draw precision by recall of labels with goals, from the most probable spans found to all of them."""
    columns = ["kind", "gold_label", "predicted_label", "probability", "gold_probability"]
    pairs = tables.read_pairs(columns, split, pc.field("kind") != "unscored") if metrics.goals else pa.table({})
    found: dict[str, list[tuple[float, bool]]] = {label: [] for label in metrics.goals}
    gold = Counter[str]()
    for row in pairs.to_pylist():
        right = row["kind"] == "right"
        gold[row["gold_label"]] += 1
        for label, p, good in (
            (row["predicted_label"], row["probability"], right),
            (row["gold_label"], None if right else row["gold_probability"], True),
        ):
            if label in found and p is not None:
                found[label].append((p, good))
    charts = []
    for label, spans in found.items():
        ranked = np.cumsum([good for _, good in sorted(spans, reverse=True)])
        if gold[label] and len(ranked) and ranked[-1]:
            at = np.unique(np.linspace(1, len(ranked), TRADEOFF).astype(int)) - 1
            recall, precision = ranked[at] / gold[label], ranked[at] / (at + 1)
            points = list(zip((100 * recall).tolist(), (100 - 100 * precision).tolist(), strict=True))
            aimed = f"the goal is {metrics.goals[label].figure} {metrics.goals[label].goal}"
            title = (
                f"{label} on {split or 'test'}: precision by recall, from the most probable span to all found; {aimed}"
            )
            charts.append(Chart(title, points, "0", "1", "recall 1"))
    return charts


def name_texts(
    mistakes: Sequence[dict[str, Any]], changed: Sequence[dict[str, Any]], corpus: Path, pipeline: str
) -> None:
    """Name texts without a document by file and line, in place; without a corpus, they keep their digests.

    An error that is a prediction of heads for labels, which have probabilities, gets the command that explains it.
    """
    keys = {row["key"] for row in mistakes} | {row["text"] for row in changed}
    found = read_answers(corpus, keys) if keys and is_corpus(corpus) else ()
    names = {key: answers[0].of(None) for key, answers in found if answers}
    for row in mistakes:
        explained = row.pop("probability") is not None and row["key"] in names
        at, name = str(row.pop("predicted_start")), names.get(row["key"], "")
        asked = ["python", "-m", "scripts.why", "corpus", name, "--predicted", pipeline, "--at", at]
        row["why"] = shlex.join(asked) if explained else ""
        row["doc"] = row["doc"] or names.get(row["key"], row["key"])
    for row in changed:
        row["text"] = names.get(row["text"], row["text"])


def count_texts_per_100(tables: Tables, split: str) -> dict[str, float]:
    """Compute how many texts have 100 gold spans of each label, from a split's texts that are complete for it."""
    texts, elsewhere, spans = 0, Counter[str](), Counter[str]()
    for group, pairs in tables.groups(("key", "partial", "unknown"), ("key", "gold_label"), split):
        uncovered = {row["key"]: {*row["partial"], *row["unknown"]} for row in group.to_pylist()}
        texts += len(uncovered)
        elsewhere.update(label for labels in uncovered.values() for label in labels)
        gold = ((row["key"], row["gold_label"]) for row in pairs.to_pylist())
        spans.update(label for key, label in gold if label and label not in uncovered[key])
    return {label: 100 * (texts - elsewhere[label]) / n for label, n in spans.items()}


def first_of_each(rows: Sequence[Any], names: Iterable[Collection[Any]], most: int) -> list[Any]:
    """Choose `most` rows, the first ones of each name, in their order.

    names (Iterable): one or more names of each row.
    """
    seen = Counter[Any]()
    ranks = []
    for number, own in enumerate(names):
        seen.update(own)
        ranks.append((min(seen[name] for name in own), number))
    return [rows[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def list_changed(changed: Sequence[ChangedSpan]) -> list[dict[str, Any]]:
    """List fixed and new errors, at most MAX_CHANGES: the first of each label."""
    names = ([(one.label, one.change)] for one in changed)
    return [one._asdict() for one in first_of_each(changed, names, MAX_CHANGES)]


def list_mistakes(tables: Tables, split: str) -> list[dict[str, Any]]:
    """List errors on a split, equal words once, most frequent first; of too many, the first of each label."""
    names = ["kind", "gold_label", "predicted_label", "gold_text", "predicted_text"]
    places = [f"{side}_{end}" for side in ("gold", "predicted") for end in ("start", "end")]
    more = ["probability", "cause", "doc", "before", "after", "annotated", "unannotated", "otherwise", "other_label"]
    rows = tables.read_pairs([*names, *places, *more, "key"], split, pc.field("kind").isin([*KINDS]))
    rows = rows.append_column("place", pa.array(range(len(rows))))
    groups = rows.group_by(names).aggregate([([], "count_all"), ("place", "min")])
    groups = groups.sort_by([("count_all", "descending"), ("place_min", "ascending")]).to_pylist()
    labels = ({group["gold_label"], group["predicted_label"]} - {None} for group in groups)
    chosen = first_of_each(groups, labels, MAX_MISTAKES)
    found = rows.take(pa.array([group["place_min"] for group in chosen], pa.int64())).to_pylist()
    gold: dict[str, list[SpanKey]] = {}
    columns = ["key", "gold_start", "gold_end", "gold_label"]
    keys = pc.field("key").isin(pa.array([row["key"] for row in found], pa.string()))
    for row in tables.read_pairs(columns, split, keys & pc.field("gold_label").is_valid()).to_pylist():
        gold.setdefault(row["key"], []).append((row["gold_start"], row["gold_end"], row["gold_label"]))
    for row, group in zip(found, chosen, strict=True):
        about, other = ([row.pop(f"{side}_{end}") for end in ("start", "end")] for side in ("gold", "predicted"))
        row["predicted_start"] = other[0]
        start, end = row["span"] = about if row["gold_label"] else other
        first, last = start - len(row["before"]), end + len(row["after"])
        spans = (span for span in gold.get(row["key"], ()) if span[0] < last and first < span[1])
        row["others"] = [(one - start, two - start, label) for one, two, label in spans if [one, two] != [start, end]]
        row["count"] = group["count_all"]
        del row["place"]
    return found
