"""Make the report of a pipeline: one HTML page that needs neither network nor other files.

`results` reads what merge, training and evaluation have written, and `deck` the findings of a check; `advice` judges
them, and the template shows them. It escapes everything that comes from a corpus. Equal results make equal bytes.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from configparser import ConfigParser, Error
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from labelwise import __version__
from labelwise.base.errors import InputError
from labelwise.base.files import atomic
from labelwise.base.text import SpanKey, counted, decode_counter
from labelwise.compare.changed_spans import ChangedSpan
from labelwise.compare.train_curve import read_train_curve
from labelwise.datasets.brat_tasks import Report
from labelwise.datasets.convert_brat import REPORT
from labelwise.evaluate.ranking import SHIP_AT, RankedLabel
from labelwise.evaluate.results import load_results
from labelwise.evaluate.scores import Metrics
from labelwise.evaluate.tables import MISSED, TOKENS, Tables
from labelwise.report.advice import KINDS, LABEL_MORE, REASONS, Advice, advise, confusions, divide
from labelwise.report.annotators import read_annotators
from labelwise.report.deck import read_deck

CURVE = "metrics/train_curve.json"
MISTAKES = 1000  # different ones on a page, at most
CHANGES = 300  # of those that are gone or new since the base
NAMED = 3  # confused pairs of labels


class Base(NamedTuple):
    """An earlier evaluation that the page compares with.

    name (str): of the git revision.
    decided (int): cases that were decided since.
    changed (Sequence): mistakes that are gone or new since.
    """

    name: str
    metrics: Metrics
    decided: int = 0
    changed: Sequence[ChangedSpan] = ()


def write_report(
    root: Path | str,
    pipeline: str,
    out: Path | str,
    *,
    base: Base | None = None,
    ship_at: float = SHIP_AT,
    annotators: bool = False,
) -> Advice:
    """Write the report of a pipeline as an HTML page, and return what it says.

    root (Path | str): the folder of the project.
    pipeline (str): its name, such as cpu.
    ship_at (float): what the lower end of a label's interval of F1 must reach for it to be used.
    annotators (bool): name the people who annotated, though pages are sent around.
    RAISES (InputError): nothing was evaluated, a file isn't what it should be, or another process is writing the page.
    """
    root = Path(root)
    if not 0 <= ship_at <= 1:
        raise InputError(f"ship_at {ship_at}: give a share, from 0 to 1")
    out = Path(out)
    (metrics, merge, tables, curve), deck = load_results(root, pipeline), read_deck(root)
    estimate, sample = deck.estimate(), deck.sample()
    known: dict[str, Any] = {"shares": estimate.shares} if estimate else {"sample": len(sample)}
    known["max_steps"] = read_max_steps(root / "configs" / f"{pipeline}.cfg")
    known["trained_steps"] = read_max_steps(root / "training" / pipeline / "model-best" / "config.cfg")
    advice = advise(metrics, curve, pipeline, ship_at, deck.counts, merge, **known)
    cases = deck.choose({row.label: row.total for row, _ in advice.rows if row.verdict != "ship" or row.close})
    for answer in (answer for one in cases for answer in one["answers"].values() if not annotators):
        answer["annotator"] = ""
    template = make_environment().get_template("report.html.jinja")
    page = template.render(
        pipeline=pipeline,
        merge=merge,
        metrics=metrics,
        advice=advice,
        lacking=read_lacking(root),
        ship_at=ship_at,
        bar=divide(metrics),
        missed=divide_missed(metrics),
        confused=confusions(metrics)[:NAMED],
        estimate=estimate,
        sample=len(sample),
        more=want_texts(advice),
        base=base,
        deck=deck,
        listed=sum(one["listed"] for one in cases),
        cards={
            "cases": cases,
            "mistakes": list_mistakes(tables) if tables else [],
            "gold": [row.label for row, _ in advice.rows if row.mistakes.gold],
            "base": base.name if base else "",
            "changed": list_changed(base.changed) if base else [],
            "kinds": KINDS,
            "reasons": REASONS,
        },
        people=read_annotators(root / "corpus") if annotators else [],
        curve=read_train_curve(root / CURVE, metrics.pipeline_digest),
        texts_per_100=count_texts_per_100(tables) if tables else {},
    )
    content = page.encode()
    if not out.is_file() or out.read_bytes() != content:  # its time tells when it has changed
        with atomic(out) as path:
            path.write_bytes(content)
    return advice


def read_lacking(root: Path) -> Mapping[str, int]:
    """Count, by suffix, the test texts of a brat corpus that lack a file that other splits have."""
    file = root / "corpus" / "tasks" / REPORT
    if not file.is_file():
        return {}
    return msgspec.json.decode(file.read_bytes(), type=Report, dec_hook=decode_counter).lacking.get("test", {})


def read_max_steps(path: Path) -> int:
    """Read the most steps that a config allows; 0 if there is no such config, or it can't be read."""
    config = ConfigParser(interpolation=None)
    try:
        config.read(path, encoding="utf8")
        return config.getint("training", "max_steps", fallback=0)
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
        "score": lambda value: "–" if value is None else f"{value:.2f}",
        "number": "{:,}".format,
        "share": format_share,
        "counted": counted,
        "json": json_in_page,
    }
    environment.globals |= {
        "version": __version__,
        "hash_of": hash_of,
        "kinds": KINDS,
        "reasons": REASONS,
        "decide": "python -m scripts.decide ~/Downloads/decisions.jsonl",
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
    total = sum((Counter(one.causes) for one in metrics.mistakes.values()), Counter[str]())
    found = {reason: total[reason] for reason in MISSED if reason != TOKENS}
    return found | {TOKENS: divide(metrics)["missed"] - sum(found.values())}


def want_texts(advice: Advice) -> list[RankedLabel]:
    """List the labels whose next step is more texts, first those that miss the most spans which these teach."""
    rows = [row for row, step in advice.rows if step == LABEL_MORE]
    return sorted(rows, key=lambda row: -sum(row.mistakes.causes.get(cause, 0) for cause in ("new", "known")))


def count_texts_per_100(tables: Tables) -> dict[str, float]:
    """Compute how many texts have 100 gold spans of each label, from the test texts that are complete for it."""
    texts, elsewhere, spans = 0, Counter[str](), Counter[str]()
    for group, pairs in tables.groups(("key", "partial", "unknown"), ("key", "gold_label")):
        uncovered = {row["key"]: {*row["partial"], *row["unknown"]} for row in group.to_pylist()}
        texts += len(uncovered)
        elsewhere.update(label for labels in uncovered.values() for label in labels)
        gold = ((row["key"], row["gold_label"]) for row in pairs.to_pylist())
        spans.update(label for key, label in gold if label and label not in uncovered[key])
    return {label: 100 * (texts - elsewhere[label]) / n for label, n in spans.items()}


def first_of_each(rows: Sequence[Any], names: Iterable[Collection[Any]], most: int) -> list[Any]:
    """Choose so many rows, and of each name those that come first; they stay in order.

    names (Iterable): of each row, one or more.
    """
    seen = Counter[Any]()
    ranks = []
    for number, own in enumerate(names):
        seen.update(own)
        ranks.append((min(seen[name] for name in own), number))
    return [rows[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def list_changed(changed: Sequence[ChangedSpan]) -> list[dict[str, Any]]:
    """List what was won and lost; if it is too much, the first of each label."""
    names = ([(one.label, one.change)] for one in changed)
    return [one._asdict() for one in first_of_each(changed, names, CHANGES)]


def list_mistakes(tables: Tables) -> list[dict[str, Any]]:
    """List mistakes, each form once, the most frequent first; if there are too many, those of each label."""
    names = ["kind", "gold_label", "predicted_label", "form", "predicted_form"]
    places = [f"{side}_{end}" for side in ("gold", "predicted") for end in ("start", "end")]
    more = ["cause", "doc", "before", "after", "marked", "free", "otherwise", "other_label"]
    rows = tables.read_pairs([*names, *places, *more, "key"], pc.field("kind").isin([*KINDS]))
    rows = rows.append_column("place", pa.array(range(len(rows))))
    groups = rows.group_by(names).aggregate([([], "count_all"), ("place", "min")])
    groups = groups.sort_by([("count_all", "descending"), ("place_min", "ascending")]).to_pylist()
    labels = ({group["gold_label"], group["predicted_label"]} - {None} for group in groups)
    chosen = first_of_each(groups, labels, MISTAKES)
    found = rows.take(pa.array([group["place_min"] for group in chosen], pa.int64())).to_pylist()
    gold: dict[str, list[SpanKey]] = {}
    columns = ["key", "gold_start", "gold_end", "gold_label"]
    keys = pc.field("key").isin(pa.array([row["key"] for row in found], pa.string()))
    for row in tables.read_pairs(columns, keys & pc.field("gold_label").is_valid()).to_pylist():
        gold.setdefault(row["key"], []).append((row["gold_start"], row["gold_end"], row["gold_label"]))
    for row, group in zip(found, chosen, strict=True):
        about, other = ([row.pop(f"{side}_{end}") for end in ("start", "end")] for side in ("gold", "predicted"))
        start, end = row["span"] = about if row["gold_label"] else other
        first, last = start - len(row["before"]), end + len(row["after"])
        spans = (span for span in gold.get(row["key"], ()) if span[0] < last and first < span[1])
        row["others"] = [(one - start, two - start, label) for one, two, label in spans if [one, two] != [start, end]]
        row["count"] = group["count_all"]
        del row["place"]
    return found
