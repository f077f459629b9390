"""Export of a corpus to its brat files: only lines that an edit removed are missing, and named."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.datasets.convert_brat import convert_brat
from labelwise.export.export_corpus import export
from labelwise.export.originals import Originals
from labelwise.export.source import read_corpus
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions
from scripts.export import export_cli
from tests.conftest import call, real_corpus, task, write_jsonl

OTHER = "with another text or other spans than the merge read"
CLINIC = "No fever. Gave aspirin 500 mg twice; then stopped it."
WORDS = 60  # words of a document that is made


class Standoff:
    """A document as an annotation tool writes it.

    rows (list): per line: as written, as it comes back, the ids that it names.
    spans (dict): offsets and label of continuous spans, by id.
    """

    def __init__(
        self, words: Sequence[str], gap: str = " ", end: str = "\n", first: int = 1, utf16: bool = False
    ) -> None:
        """Join words; every eighth ends a line.

        first (int): number of the first span.
        utf16 (bool): count offsets in UTF-16 code units, as JavaScript does.
        """
        self.words, self.first, self.utf16 = words, first, utf16
        self.text, self.places = "", []
        for number, word in enumerate(words, 1):
            self.places.append((len(self.text), len(self.text) + len(word)))
            self.text += word + (gap if number % 8 else end)
        self.rows: list[tuple[str, str, Sequence[str]]] = []
        self.spans: dict[str, tuple[int, int, str]] = {}

    def span(self, label: str, *pieces: tuple[int, int], renamed: str = "") -> str:
        """Annotate words in pieces of (first, number of words); return the id."""
        ranges = [(self.places[at][0], self.places[at + n - 1][1]) for at, n in pieces]
        name = f"T{self.first + sum(row[0][:1] == 'T' for row in self.rows)}"
        mention = " ".join(" ".join(self.text[start:end].split()) for start, end in sorted(ranges))
        rows = []
        for units, shown in ((self.units, label), (int, renamed or label)):
            where = ";".join(f"{units(start)} {units(end)}" for start, end in ranges)
            rows.append(f"{name}\t{shown} {where}\t{mention}")
        if len(ranges) == 1:
            self.spans[name] = (*ranges[0], renamed or label)
        self.rows.append((*rows, [name]))
        return name

    def units(self, at: int) -> int:
        return len(self.text[:at].encode("utf-16-le")) // 2 if self.utf16 else at

    def add(self, row: str, *named: str, back: str = "") -> str:
        """Add another line that names some ids; return its id."""
        self.rows.append((row, back or row, named))
        return row.partition("\t")[0]

    def back(self, *gone: str) -> tuple[list[str], list[str]]:
        """Return the lines that come back without some spans, and the lines that go with these."""
        lost, rows, left_out = {*gone}, self.rows, []
        while more := [row for row in rows if not lost.isdisjoint(row[2])]:
            lost |= {row[0].partition("\t")[0] for row in more} - {"*"}
            rows, left_out = [row for row in rows if row not in more], [*left_out, *more]
        return [row for _, row, _ in rows], [row for row, *_ in left_out if row[0] != "T"]


def annotate_attributes(doc: Standoff, number: int) -> None:
    """As brat writes a clinic's documents: flags, values, and notes on them."""
    sign, drug = doc.span("Sign", (number, 1)), doc.span("Drug", (20, 2))
    negated = doc.add(f"A1\tNegated {sign}", sign)
    doc.add(f"A2\tStatus {drug} Stopped", drug)
    doc.add(f"#1\tAnnotatorNotes {negated}\twas {drug} meant?", negated)
    doc.add(f"M1\tSure {doc.span('Drug', (20, 2))}", "T3")  # a duplicate
    doc.add(f"A3\tStatus {doc.span('Sign', (30, 1))} New", "T4")


def annotate_events(doc: Standoff, number: int) -> None:
    """As brat writes events: a blank behind the last argument, nested events, events without arguments."""
    trigger, drug = doc.span("Give", (number, 1), renamed="Do"), doc.span("Drug", (20, 2))
    event = doc.add(f"E1\tGive:{trigger} Theme:{drug} ", trigger, drug, back=f"E1\tDo:{trigger} Theme:{drug} ")
    unwanted = doc.span("Dose", (24, 1))  # the section `brat` leaves its label out
    stop = doc.span("Stop", (30, 1))
    doc.add(f"E2\tStop:{stop} Theme:{event} Theme2:{drug} Dose:{unwanted}", stop, event, drug, unwanted)
    alone = doc.add(f"E3\tStop:{doc.span('Stop', (34, 1))} ", "T5")
    doc.add("A1\tNegated E2", "E2")
    doc.add(f"#1\tAnnotatorNotes {alone}\t??", alone)


def annotate_relations(doc: Standoff, number: int) -> None:
    """As tools for relations write: a final tab, roles in capitals, types with colons, coreference."""
    drug, other = doc.span("Drug", (20, 2)), doc.span("Drug", (number, 1))
    doc.add(f"R1\tHas Arg1:{drug} Arg2:T3\t", drug, "T3")  # before its span
    dose, regime = doc.span("Dose", (22, 2)), doc.span("Regime", (20, 4))
    doc.add(f"R2\tCPR:4 ARG1:{dose} ARG2:{other}", dose, other)
    doc.add(f"*\tEquiv {drug} {other} {regime}", drug, other, regime)
    doc.add(f"*\tEquiv {dose} {regime}", dose, regime)
    doc.add(f"#1\tAnnotatorNotes R2\t{drug}?", "R2")
    doc.add("no annotation")


def annotate_shared_task(doc: Standoff, number: int) -> None:
    """As BioNLP's shared tasks: proteins in .a1; triggers, events and modifications in .a2."""
    drugs = doc.span("Drug", (number, 1)), doc.span("Drug", (20, 1))
    binding = doc.span("Binding", (24, 1))
    doc.add(f"*\tEquiv {' '.join(drugs)}", *drugs)
    doc.add(f"E1\tBinding:{binding} Theme:{drugs[0]} Theme2:{drugs[1]}", binding, *drugs)
    doc.add(f"E2\tStop:{doc.span('Stop', (30, 1))} Theme:E1 Cause:{drugs[1]}", "T4", "E1", drugs[1])
    doc.add("M1\tNegation E2", "E2")


def annotate_concepts(doc: Standoff, number: int) -> None:
    """As corpora of concepts: discontinuous spans, with codes as normalizations and notes."""
    lung, other = doc.span("Part", (20, 1), (23, 1)), doc.span("Part", (28, 1), (26, 1))
    sign = doc.span("Sign", (number, 1))
    code = doc.add(f"N1\tReference {sign} ATC:{lung}\taspirin", sign)
    doc.add(f"#1\tAnnotatorNotes {lung}\t387458008", lung)
    doc.add(f"#2\tAnnotatorNotes {code}\tbest one", code)
    doc.add(f"R1\tBeside Arg1:{other} Arg2:{sign}\t", other, sign)
    doc.add("#3\tAnnotatorNotes\tof the document")
    for at in range(36, 44):
        doc.span("Sign", (at, 1))


def annotate_exported(doc: Standoff, number: int) -> None:
    """As tools in browsers export: CRLF, UTF-16 code units, ids from 0, blank lines."""
    drug, stop = doc.span("Drug", (number, 1)), doc.span("Stop", (30, 1))
    doc.add("")
    doc.add(f"#1\tAnnotatorNotes {drug}\t{stop} again?\tsure", drug)
    doc.add(f"N1\tReference {drug} ATC:{stop}\taspirin", drug)
    doc.add(f"A1\tSure {doc.span('Drug', (38, 4))}", "T2")  # over the end of a line
    doc.add("T7 broken")


# By kind: what annotates a document, how it is joined, and the section `brat` that reads the corpus.
KINDS: dict[str, tuple[Callable[[Standoff, int], None], dict[str, Any], BratOptions]] = {
    "attributes": (annotate_attributes, {}, BratOptions()),
    "events": (annotate_events, {}, BratOptions(rename={"Give": "Do"}, labels=["Do", "Drug", "Stop"])),
    "relations": (annotate_relations, {}, BratOptions()),
    "shared task": (annotate_shared_task, {}, BratOptions()),
    "concepts": (annotate_concepts, {}, BratOptions()),
    "covered concepts": (annotate_concepts, {}, BratOptions(discontinuous="cover")),
    "exported": (annotate_exported, {"end": "\r\n", "first": 0, "utf16": True}, BratOptions()),
}


def make_corpus(kind: str, folder: Path) -> dict[str, Standoff]:
    """Write a corpus; return its documents by name. The last is the first with other white space."""
    annotate, joined, _ = KINDS[kind]
    rng, docs = random.Random(kind), {}
    for number in range(8):
        words = [str(number), *rng.choices(["aspirin", "é", "fièvre", "x-ray", "😀", "500", "mg", "of"], k=WORDS)]
        docs[f"d{number % 3}/{number}"] = Standoff(words, **joined)
    docs["z/last"] = Standoff(docs["d0/0"].words, **{**joined, "gap": "  "})
    for number, (name, doc) in enumerate(docs.items()):
        annotate(doc, number + 1)
        write_brat(folder, {f"{name}.txt": doc.text, **files_of(kind, doc, [row for row, *_ in doc.rows], name)})
    return docs


def files_of(kind: str, doc: Standoff, rows: Sequence[str], name: str) -> dict[str, str]:
    """Divide a document's lines into its annotation files."""
    first = [row for row in rows if kind == "shared task" and "\tDrug " in row]
    second = [row for row in rows if row not in first]
    suffixes = {".a1": first, ".a2": second} if kind == "shared task" else {".ann": second}
    return {name + suffix: "".join(row + "\n" for row in some) for suffix, some in suffixes.items()}


def write_brat(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def merge_brat(root: Path, how: BratOptions, rows: Sequence[dict] = (), **settings: object) -> Path:
    """Merge a folder's brat corpus, with verdicts on single spans."""
    convert_brat(root / "brat", root / "tasks", how)
    declared = [root / "tasks/datasets.yml"]
    if rows:
        write_jsonl(root / "more/verdicts.jsonl", rows)
        labels = sorted({span["label"] for row in rows for span in row["spans"]})
        entry = {"name": "verdicts", "path": "verdicts.jsonl", "labels": labels, "kind": "binary"}
        (root / "more/datasets.yml").write_text(yaml.safe_dump([entry]))
        declared.append(root / "more/datasets.yml")
    policies = {"conflicts": "reject-wins", "docs_per_partition": 1}
    merge_data(declared, root / "corpus", Settings(**{**policies, **settings}))
    return root / "corpus"


def verdict(text: str, form: str, label: str, answer: str) -> dict:
    start = text.index(form)
    return task(text, (start, start + len(form), label), answer=answer, _view_id="ner", _is_binary=True)


def lines_of(folder: Path) -> dict[str, list[str]]:
    files = (file for file in sorted(folder.rglob("*")) if file.suffix in (".ann", ".a1", ".a2"))
    return {file.relative_to(folder).as_posix(): file.read_bytes().decode().splitlines() for file in files}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tasks", [False, True])
def test_a_brat_corpus_comes_back_whole(kind, tasks, tmp_path):
    docs, how = make_corpus(kind, tmp_path / "brat"), KINDS[kind][2]
    source = merge_brat(tmp_path, how)
    originals = Originals(tmp_path / "brat", how)
    done = export(tmp_path / "tasks" if tasks else source, tmp_path / "out", "brat", originals=originals)
    assert not done.warnings
    for name, doc in docs.items():
        assert (tmp_path / "out" / f"{name}.txt").read_bytes() == doc.text.encode()
        for file, content in files_of(kind, doc, doc.back()[0], name).items():
            assert (tmp_path / "out" / file).read_text(encoding="utf8") == content
    convert_brat(tmp_path / "out", tmp_path / "again", how)
    merge_data([tmp_path / "again/datasets.yml"], tmp_path / "back", Settings())
    assert [(doc.text, doc.spans) for doc in read_corpus(tmp_path / "back")] == [
        (doc.text, doc.spans) for doc in read_corpus(tmp_path / "corpus")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejected_span_takes_the_lines_that_need_it(kind, tmp_path):
    docs, how = make_corpus(kind, tmp_path / "brat"), KINDS[kind][2]
    rejected, gone = [], {}
    for number, name in enumerate(list(docs)[1:-1]):
        usable = {one: span for one, span in docs[name].spans.items() if not how.labels or span[2] in how.labels}
        span = [*usable.values()][number % len(usable)]
        gone[name] = [one for one, other in usable.items() if other == span]
        rejected.append(task(docs[name].text, span, answer="reject", _view_id="ner", _is_binary=True))
    corpus = merge_brat(tmp_path, how, rejected)
    done = export(corpus, tmp_path / "out", "brat", originals=Originals(tmp_path / "brat", how))
    left_out = []
    for name, doc in docs.items():
        back, others = doc.back(*gone.get(name, ()))
        left_out += others
        for file, content in files_of(kind, doc, back, name).items():
            assert (tmp_path / "out" / file).read_text(encoding="utf8") == content
    beside = (tmp_path / "out/left_out.tsv").read_text(encoding="utf8").splitlines()
    assert sorted(row.partition("\t")[2] for row in beside) == sorted(left_out)
    assert f"{len(left_out)} lines left out" in str(done.warnings)


@pytest.mark.long
@pytest.mark.parametrize("name", ["litbank", "materials_syntheses", "wnut2020_wlp"])
def test_a_public_brat_corpus_comes_back_whole(name, tmp_path):
    """Except documents of one text in two splits, which the merge joins."""
    (tmp_path / "brat").symlink_to(real_corpus(name))
    corpus = merge_brat(tmp_path, BratOptions())
    export(corpus, tmp_path / "out", "brat", originals=Originals(tmp_path / "brat"))
    texts = Counter(file.read_bytes() for file in (tmp_path / "brat").rglob("*.txt"))
    files = [*(tmp_path / "brat").rglob("*.ann")]
    changed = []
    for file in files:
        target = tmp_path / "out" / file.relative_to(tmp_path / "brat")
        changed += [file] if file.read_bytes() != target.read_bytes() else []
    assert len(files) >= 100
    assert all(texts[file.with_suffix(".txt").read_bytes()] > 1 for file in changed)
    assert len(changed) == (4 if name == "wnut2020_wlp" else 0)


def test_an_edit_takes_the_lines_that_name_its_span_and_no_other(tmp_path):
    rows = [
        "T7\tStop 42 49\tstopped",
        "T2\tDrug 15 22\taspirin",
        "E1\tStop:T7 Theme:T2",
        "E2\tGive:T1 Theme:T2",
        "T1\tGive 10 14\tGave",
        "T3\tGive 10 14\tGave",
        "R1\tBefore Arg1:E2 Arg2:E1",
        "A1\tSure E2",
        "#1\tAnnotatorNotes R1\tT2 is fine",
        "*\tEquiv T2 T7",
        "N1\tReference T2 ATC:T7\taspirin",
    ]
    brat = write_brat(tmp_path / "brat", {"d/1.txt": CLINIC, "d/1.ann": "\n".join(rows)})
    judged = [verdict(CLINIC, "Gave", "Give", "reject"), verdict(CLINIC, "fever", "Sign", "accept")]
    corpus = merge_brat(tmp_path, BratOptions(), judged)
    printed = call(export_cli, corpus, tmp_path / "out", "--originals", brat)
    back = [row for row in rows if not row.startswith(("T1\t", "T3\t", "E2", "R1", "A1", "#1"))]
    assert lines_of(tmp_path / "out") == {"d/1.ann": [*back, "T8\tSign 3 8\tfever"]}
    assert "4 lines left out" in printed
    assert "events (1), relations (1), attributes (1), notes (1)" in printed
    assert "the first: d/1.ann:4, d/1.ann:7, d/1.ann:8" in printed
    beside = (tmp_path / "out/left_out.tsv").read_text(encoding="utf8").splitlines()
    assert beside == [f"d/1.ann:{rows.index(row) + 1}\t{row}" for row in (rows[3], rows[6], rows[7], rows[8])]


def test_an_original_that_is_missing_or_has_changed_stops_the_export(tmp_path):
    text = "aspirin, stopped"
    files = {f"{n}.txt": f"{n} {text}" for n in range(3)}
    files |= {f"{n}.ann": "T1\tDrug 2 9\taspirin\nA1\tNew T1\n" for n in range(3)}
    brat = write_brat(tmp_path / "brat", files)
    corpus = merge_brat(tmp_path, BratOptions())
    for name, content, why in (
        ("0.ann", "T1\tDrug 2 9\taspirin\nA1\tNew T1\nT2\tStop 11 18\tstopped\n", OTHER),
        ("1.ann", "T1\tDose 2 9\taspirin\nA1\tNew T1\n", OTHER),
        ("2.txt", f"2 {text} it", OTHER),
        ("2.ann", None, f"not in {brat}"),
        ("2.txt", None, f"not in {brat}"),
    ):
        (brat / name).unlink() if content is None else (brat / name).write_text(content)
        printed = call(export_cli, corpus, tmp_path / "out", "--originals", brat, status=1)
        assert f"{name[0]}.txt: 1 brat document {why}" in printed
        assert not (tmp_path / "out").exists()
        accepted = call(export_cli, corpus, tmp_path / "out", "--originals", brat, "--accept-changed")
        assert "3 texts with 3 spans" in accepted
        written = lines_of(tmp_path / "out")
        mine = next(rows for file, rows in written.items() if file[0] == name[0])
        assert [row for row in mine if row[0] == "T"] == ["T1\tDrug 2 9\taspirin"] or name == "1.ann"
        assert [rows for file, rows in written.items() if file[0] != name[0]] == [
            ["T1\tDrug 2 9\taspirin", "A1\tNew T1"]
        ] * 2
        write_brat(tmp_path / "brat", files)
        for file in (tmp_path / "out").rglob("*"):
            file.unlink()
        (tmp_path / "out").rmdir()
    with pytest.raises(
        InputError, match=r"0.txt, 1.txt, 2.txt: 3 brat documents not found.*--originals.*--accept-changed"
    ):
        export(corpus, tmp_path / "out", "brat")


def test_the_originals_are_those_of_the_project_unless_an_option_names_others(tmp_path, monkeypatch):
    brat = write_brat(tmp_path / "brat", {"1.txt": CLINIC, "1.ann": "T1\tMED 15 22\taspirin\nA1\tNew T1\n"})
    how = BratOptions(rename={"MED": "Drug"})
    corpus = merge_brat(tmp_path, how)
    (tmp_path / "project.yml").write_text("vars:\n  data: .\nbrat:\n  rename: {MED: Drug}\n")
    monkeypatch.chdir(tmp_path)
    call(export_cli, corpus, "out")
    assert lines_of(tmp_path / "out") == {"1.ann": ["T1\tDrug 15 22\taspirin", "A1\tNew T1"]}
    brat.rename(tmp_path / "moved")
    assert "1.txt: 1 brat document not in brat" in call(export_cli, corpus, "out", status=1)
    call(export_cli, corpus, "out", "--originals", "moved")


@pytest.mark.parametrize("folders", ["annotators", "labels", "versions"])
def test_folders_keep_spans_of_their_own(folders, tmp_path):
    rows = {"a": ["T1\tDrug 15 22\taspirin", "A1\tNew T1"], "b": ["T1\tDose 23 29\t500 mg", "#1\tAnnotatorNotes T1\t?"]}
    both = {"annotators": "Drug", "labels": "Dose", "versions": "Dose"}[folders]
    rows["b"][0] = rows["b"][0].replace("Dose", both)
    files = {f"{name}/{n}.txt": f"{CLINIC} {n}" for name in rows for n in range(2)}
    files |= {f"{name}/{n}.ann": "\n".join(some) + "\n" for name, some in rows.items() for n in range(2)}
    how = BratOptions(folders=folders)
    brat = write_brat(tmp_path / "brat", files)
    corpus = merge_brat(tmp_path, how, [verdict(f"{CLINIC} 0", "stopped", both, "accept")], annotators="union")
    done = export(corpus, tmp_path / "out", "brat", originals=Originals(brat, how))
    after = {file: content.splitlines() for file, content in files.items() if file.endswith(".ann")}
    after["a/0.ann" if folders == "annotators" else "b/0.ann"].append(f"T2\t{both} 42 49\tstopped")
    assert (lines_of(tmp_path / "out"), done.warnings) == (after, [])


def test_brats_configuration_comes_back_with_labels_that_it_lacks(tmp_path):
    own = "[entities]\nDrug\n\n[relations]\nHas\tArg1:Drug, Arg2:Drug\n"
    files = {
        "1.txt": CLINIC,
        "1.ann": "T1\tDrug 15 22\taspirin\n",
        "annotation.conf": own,
        "d/visual.conf": "[labels]\n",
    }
    judged = [verdict(CLINIC, "fever", "Sign", "accept")]
    brat = write_brat(tmp_path / "brat", files)
    corpus = merge_brat(tmp_path, BratOptions(), judged)
    export(corpus, tmp_path / "out", "brat", originals=Originals(brat))
    assert (tmp_path / "out/d/visual.conf").read_text() == "[labels]\n"
    assert (tmp_path / "out/annotation.conf").read_text() == own.replace("[entities]\n", "[entities]\nSign\n")
    (brat / "annotation.conf").unlink()
    (brat / "1.ann").write_text(
        "T1\tDrug 15 22\taspirin\nT2\tStop 42 49\tstopped\nE1\tStop:T2 Theme:T1 Theme2:T1\n"
        "R1\tHas:late Arg1:T1 Arg2:E1\nA1\tNew T1\nA2\tSure T1 very\nA3\tSure T2 not\n"
    )
    merge_brat(tmp_path, BratOptions(), judged)
    export(corpus, tmp_path / "out", "brat", originals=Originals(brat))
    assert (tmp_path / "out/annotation.conf").read_text().splitlines() == [
        "[entities]",
        "Sign",
        "Drug",
        "",
        "[relations]",
        "<OVERLAP>\tArg1:<ENTITY>, Arg2:<ENTITY>, <OVL-TYPE>:<ANY>",
        "Has:late\tArg1:<ANY>, Arg2:<ANY>",
        "",
        "[events]",
        "Stop\tTheme*:<ANY>",
        "",
        "[attributes]",
        "New\tArg:<ANY>",
        "Sure\tArg:<ANY>, Value:not|very",
    ]
