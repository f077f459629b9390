"""The page's numbers, computed again from the parquet files by other code."""

import json
import re
import shutil
from collections import Counter
from html import unescape
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import pytest
from pyarrow.parquet import read_table
from scipy.special import stdtrit

from labelwise.base.errors import InputError
from labelwise.corpus.manifest import read_split
from labelwise.report.page import write_report
from tests.report.report_inputs import LABELS, make_docs, write_findings, write_results

TARGET_F1 = 0.47
NAMES = {"missed": "missed", "boundaries": "wrong boundaries", "label": "wrong label", "spurious": "spurious"}
Counts = dict[str, Counter[str]]  # right, predicted and gold spans by text


def f_score(counts: Counter[str]) -> float:
    return 2 * counts["right"] / (counts["predicted"] + counts["gold"])


def interval(by_text: Counts) -> tuple[float, float]:
    """Compute the jackknife interval, with Student's t, symmetric in log-odds."""
    total = sum(by_text.values(), Counter())
    f, n = f_score(total), len(by_text)
    gaps = sum((f_score(total - count) - f) ** 2 for count in by_text.values())
    half = stdtrit(n - 1, 0.975) * sqrt((n - 1) / n * gaps) / (f * (1 - f))
    return tuple(1 / (1 + exp(-(log(f / (1 - f)) + side * half))) for side in (-1, 1))


class Queried:
    def __init__(self, folder: Path) -> None:
        self.texts = read_table(folder / "texts.parquet").num_rows
        self.pairs = read_table(folder / "pairs.parquet").to_pylist()
        self.kinds = Counter(row["kind"] for row in self.pairs)

    def counts(self, label: str | None = None) -> Counts:
        counts: Counts = {}
        for row in self.pairs:
            gold, predicted = row["gold_label"], row["predicted_label"]
            own = {"gold": gold, "predicted": predicted, "right": gold if row["kind"] == "right" else None}
            names = [name for name, number in own.items() if number and label in (None, number)]
            if names:
                counts.setdefault(row["key"], Counter()).update(names)
        return counts

    def mistakes(self, label: str) -> Counter[str]:
        wrong = (row for row in self.pairs if row["kind"] in NAMES)
        return Counter(row["kind"] for row in wrong if label in (row["gold_label"], row["predicted_label"]))


@pytest.fixture(scope="module", params=[(4, 1), (0, 0)], ids=["seen", "unseen"])
def root(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    write_results(folder, make_docs(), in_train=request.param)
    return folder


@pytest.fixture(scope="module")
def page(root) -> str:
    write_report(str(root), "cpu", str(root / "page.html"), target_f1=TARGET_F1)
    return (root / "page.html").read_text(encoding="utf8")


@pytest.fixture(scope="module")
def queried(root) -> Queried:
    return Queried(root / "training/cpu")


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_the_heading_is_that_of_the_pairs(page, queried, root):
    every = queried.counts()
    f, (low, high) = f_score(sum(every.values(), Counter())), interval(every)
    gold = sum(1 for row in queried.pairs if row["gold_label"])
    assert f"F1 {f:.3f} ({low:.3f} to {high:.3f}) on {queried.texts} test texts with {gold} gold spans" in words(page)
    texts = json.loads((root / "metrics/merge.json").read_text())["texts"]
    assert f"train {texts['train']}, dev {texts['dev']}, test {texts['test']} texts" in words(page)


def test_the_bar_and_the_sentence_count_each_mistake_once(page, queried):
    kinds = {"found" if kind == "right" else kind: n for kind, n in queried.kinds.items()}
    every, wrong = sum(kinds.values()), sum(kinds.values()) - kinds["found"]
    bar = re.search(r'(?s)<section id="gold".*?</section>', page)[0]
    assert f"{wrong} errors on {queried.texts} test texts" in words(bar)
    widths = {kind: float(width) for kind, width in re.findall(r'<i class="(\w+)" style="width:([\d.]+)%">', bar)}
    assert widths == {kind: round(100 * n / every, 2) for kind, n in kinds.items()}
    legend = {kind: (name, int(n)) for kind, name, n in re.findall(r'key (\w+)"></span>([\w ]+): (\d+)', bar)}
    assert legend == {kind: (NAMES.get(kind, "correct"), n) for kind, n in kinds.items()}
    reasons = Counter(row["cause"] for row in queried.pairs if row["kind"] == "missed")
    missed = re.search(r'(?s)<table id="missed">.*?</table>', bar)[0]
    assert Counter(map(int, re.findall(r'<td class="number">(\d+)</td>', missed))) == Counter(reasons.values())
    confused = Counter(
        tuple(sorted((row["gold_label"], row["predicted_label"]))) for row in queried.pairs if row["kind"] == "label"
    )
    pairs = {tuple(sorted(pair)): int(n) for *pair, n in re.findall(r"(\S+) and (\S+) \((\d+)\)", words(bar))}
    assert pairs == dict(confused.most_common(len(pairs)))
    assert max(confused.values()) in pairs.values()
    most = max(NAMES, key=lambda kind: kinds[kind])
    assert f"Of {wrong} errors on test, {kinds[most]} are" in words(page)
    rows = Counter()
    for label in LABELS:
        rows.update(queried.mistakes(label))
    assert rows.total() - rows["label"] // 2 == wrong


@pytest.mark.parametrize("label", LABELS)
def test_a_labels_row_is_that_of_its_pairs(label, page, queried, root):
    [row] = [match for match in re.findall(r"(?s)<tr>.*?</tr>", page) if f">{label}</a>" in unescape(match)]
    counts, total = queried.counts(label), sum(queried.counts(label).values(), Counter())
    f, (low, high) = f_score(total), interval(counts)
    whisker, point, goal = (
        [float(number) for number in re.search(pattern, row).groups()]
        for pattern in (r'whisker" d="M([\d.]+) 7H([\d.]+)"', r'circle cx="([\d.]+)"', r'target" d="M([\d.]+) 0')
    )
    assert [*whisker, *point, *goal] == pytest.approx([100 * low, 100 * high, 100 * f, 100 * TARGET_F1], abs=0.051)
    shown = re.search(r'aria-label="(F1 of .*?)"', row)[1]
    assert shown.endswith(f": {f:.2f}, interval {low:.2f} to {high:.2f}")
    head = [words(cell) for cell in re.findall(r"(?s)<th .*?</th>", re.search(r"(?s)<thead>.*?</thead>", page)[0])]
    cells = dict(zip(head, [words(cell) for cell in re.findall(r"(?s)<t[hd].*?</t[hd]>", row)], strict=True))
    precision, recall = total["right"] / total["predicted"], total["right"] / total["gold"]
    verdict = "borderline" if abs(low - TARGET_F1) < 0.02 else "ready" if low > TARGET_F1 else "not ready"
    merge = json.loads((root / "metrics/merge.json").read_text())
    mistakes = queried.mistakes(label)
    expected = {
        "Label": label,
        "Verdict": verdict,
        f"F1, 95% interval by text, target {TARGET_F1}": f"{f:.2f} {low:.2f}–{high:.2f}",
        "Errors on test": str(mistakes.total()),
        "Test spans": str(total["gold"]),
        "Train spans": str(merge["gold"]["train"].get(label, 0)),
        "Texts": str(merge["labels"][label]["complete"]),
        "P": f"{precision:.2f}",
        "R": f"{recall:.2f}",
    }
    assert {name: cell for name, cell in cells.items() if name in expected} == {
        name: cell for name, cell in expected.items() if name in head
    }
    assert expected.keys() - head <= {"Test spans", "Texts"}, "those with equal rows"
    shown = re.findall(r"([a-z ]+) (\d+);", re.search(r'costs" role="img" aria-label="(.*?)"', row)[1])
    assert {kind.strip(): int(n) for kind, n in shown} == {NAMES[kind]: n for kind, n in mistakes.items()}


def test_the_cards_are_those_of_the_pairs(page, queried, root):
    ready = [label for label in LABELS if interval(queried.counts(label))[0] >= TARGET_F1 + 0.02]
    assert 0 < len(ready) < len(LABELS)
    assert f"{len(ready)} of {len(LABELS) + 1} labels are ready" in words(page)  # NEVER_SEEN has no gold
    write_report(root, "cpu", root / "high.html", target_f1=0.9)  # no label is ready
    high = (root / "high.html").read_text(encoding="utf8")
    taught = Counter(row["gold_label"] for row in queried.pairs if row["cause"] in ("unseen", "seen"))
    gold = Counter(row["gold_label"] for row in queried.pairs if row["gold_label"])
    why = "rare or absent in train" if any(row["cause"] == "unseen" for row in queried.pairs) else "annotated in train"
    named = re.findall(rf"(\d+) of (\d+) test spans are missed, with words that are {why}", words(high))
    assert "test spans are missed" not in words(page), "where their next step is another"
    assert [int(n) for n, _ in named] == sorted((int(n) for n, _ in named), reverse=True)
    assert {(int(n), int(of)) for n, of in named} <= {(taught[label], gold[label]) for label in taught}
    assert len(named) == min(3, len(taught))
    card = words(re.search(r'(?s)<section id="label".*?</section>', high)[0])
    for label in LABELS:
        [row] = [match for match in re.findall(r"(?s)<tr>.*?</tr>", high) if f">{label}</a>" in unescape(match)]
        assert ("annotate more texts" in row) == (label in card), "card and table agree"
    columns = ("kind", "gold_label", "predicted_label", "gold_text", "predicted_text")
    times = Counter(tuple(row[name] for name in columns) for row in queried.pairs)
    cards = json.loads(re.search(r'(?s)id="cards">(.*?)</script>', page)[1])
    assert len(cards["mistakes"]) > 10
    assert [mistake["count"] for mistake in cards["mistakes"]] == [
        times[tuple(mistake[name] for name in columns)] for mistake in cards["mistakes"]
    ]
    assert sum(mistake["count"] for mistake in cards["mistakes"]) == sum(queried.kinds[kind] for kind in NAMES)
    gold = {(row["key"], row["gold_start"], row["gold_label"]) for row in queried.pairs if row["gold_label"]}
    for mistake in cards["mistakes"]:
        start, end = mistake["span"]
        others = {(mistake["key"], start + place, label) for place, _, label in mistake["others"]}
        assert others <= gold
        around = range(start - len(mistake["before"]), end + len(mistake["after"]))
        assert {span for span in gold if span[0] == mistake["key"] and span[1] in around and span[1] != start} <= others


def shown(root: Path) -> list[Any]:
    write_report(root, "cpu", root / "page.html")
    page = (root / "page.html").read_text(encoding="utf8")
    return json.loads(re.search(r'(?s)id="cards">(.*?)</script>', page)[1])["cases"]


def test_findings_are_those_of_the_corpus_and_others_are_refused(demo_corpus, tmp_path):
    write_results(tmp_path, make_docs())
    shutil.copytree(demo_corpus, tmp_path / "corpus")
    counted, folds = (tmp_path / f"training/{name}/findings.jsonl" for name in ("check", "check-folds"))
    digest = read_split(demo_corpus / "train").digest
    refused = r"check/findings\.jsonl: its findings are of another corpus; run `weasel run check`"
    with pytest.raises(InputError, match=refused):
        shown(tmp_path)
    own = counted.read_text().replace("of the corpus", digest)
    counted.write_text(own)
    assert len(shown(tmp_path)) == 5
    write_findings(folds)  # of an earlier corpus: counted findings are shown
    assert len(shown(tmp_path)) == 5
    folds.write_text("".join(own.splitlines(keepends=True)[:3]))
    assert len(shown(tmp_path)) == 2
    (tmp_path / "assets/decisions").mkdir(parents=True)
    (tmp_path / "assets/decisions/decisions.jsonl").write_text("")
    assert len(shown(tmp_path)) == 2
