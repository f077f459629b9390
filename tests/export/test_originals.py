"""A corpus goes back to brat with all lines of its documents: what is lost is what an edit took, and is named."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from labelwise.base.errors import InputError
from labelwise.datasets.convert_brat import convert_brat
from labelwise.export.originals import Originals
from labelwise.export.run import export
from labelwise.export.source import read_corpus
from labelwise.merge.rules.settings import Settings
from labelwise.merge.run import merge_data
from labelwise.sources.brat import BratOptions
from scripts.export import export_cli
from tests.conftest import call, task, write_jsonl

OTHER = "with another text or other spans than the merge read"
CLINIC = "No fever. Gave aspirin 500 mg twice; then stopped it."
# By corpus: its files, and the section `brat` that reads it.
CORPORA: dict[str, tuple[dict[str, str], BratOptions]] = {
    "attributes": (
        {
            "a/1.txt": CLINIC,
            "a/1.ann": "T1\tSign 3 8\tfever\nA1\tNegated T1\nT2\tDrug 15 22\taspirin\n"
            "A2\tStatus T2 Stopped\nM1\tSure T2\n",
            "a/annotation.conf": "[entities]\nSign\nDrug\n\n[relations]\n\n[events]\n\n[attributes]\nNegated\tArg:Sign",
        },
        BratOptions(),
    ),
    "relations": (
        {
            "1.txt": CLINIC,
            "1.ann": "T3\tDrug 15 22\taspirin\nT10\tDose 23 29\t500 mg\nT4\tRegime 15 35\taspirin 500 mg twice\n"
            "R1\tHas Arg1:T3 Arg2:T10\t\nR2\tHas Anaphor:T12 Antecedent:T3\nT12\tDrug 50 52\tit\n*\tEquiv T3 T12\n",
            "2.txt": "Nothing.",
            "2.ann": "",
        },
        BratOptions(),
    ),
    "events": (
        {
            "x/1.txt": CLINIC,
            "x/1.ann": "T1\tGive 10 14\tGave\nT2\tDrug 15 22\taspirin\nE1\tGive:T1 Theme:T2 Dose:T3\n"
            "T3\tDose 23 29\t500 mg\nT4\tStop 42 49\tstopped\nE2\tStop:T4 Theme:E1 Theme2:T2\nA1\tTwice E2\n",
        },
        # A label that nobody asks for is kept.
        BratOptions(rename={"Give": "Do"}, labels=["Do", "Drug", "Stop"]),
    ),
    "bionlp": (
        {
            "1.txt": CLINIC,
            "1.a1": "T1\tDrug 15 22\taspirin\n",
            "1.a2": "T2\tStop 42 49\tstopped\nE1\tStop:T2 Theme:T1\n*\tEquiv T1 T1\n",
        },
        BratOptions(),
    ),
    "notes": (
        {
            # Offsets count UTF-16 code units, and line ends are Windows'.
            "1.txt": "😀 Gave aspirin.\r\nThen é it stopped.",
            "1.ann": "T1\tDrug 8 15\taspirin\r\n#1\tAnnotatorNotes T1\tT1 again?\tsure\r\n"
            "N1\tReference T1 ATC:T2\taspirin\r\n\nT2\tStop 28 35\tstopped\n"
            "#2\tAnnotatorNotes N1\tbest one\nno annotation\nT7 broken\n",
        },
        BratOptions(),
    ),
    "pieces": (
        {
            "sub/1.txt": "left and right lung,\n no  fever",
            "sub/1.ann": "T1\tPart 0 4;15 19\tleft lung\nT2\tPart 9 19\tright lung\nR1\tBeside Arg1:T1 Arg2:T2\n"
            "T3\tSign 26 31\tfever\nT4\tSign 26 31\tfever\nA1\tNegated T4\nT5\tPart 0 4\tlung\n"
            "#1\tAnnotatorNotes T5\t?\n",
            # The same text with other white space, later in the corpus.
            "sub/2.txt": "left and right lung, no fever",
            "sub/2.ann": "T1\tPart 9 19\tright lung\nA1\tNegated T2\nT2\tSign 24 29\tfever\n",
        },
        BratOptions(),
    ),
}


def write_brat(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def merge_brat(root: Path, how: BratOptions, rows: Sequence[dict] = (), **settings: object) -> Path:
    """Merge the brat corpus of a folder, with verdicts on single spans."""
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


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("tasks", [False, True])
def test_a_brat_corpus_comes_back_whole(name, tasks, tmp_path):
    files, how = CORPORA[name]
    brat = write_brat(tmp_path / "brat", files)
    source = merge_brat(tmp_path, how)
    done = export(tmp_path / "tasks" if tasks else source, tmp_path / "out", "brat", originals=Originals(brat, how))
    assert not done.warnings
    for file, content in files.items():
        if file.endswith(".txt"):
            assert (tmp_path / "out" / file).read_bytes() == content.encode()
    before, after = lines_of(brat), lines_of(tmp_path / "out")
    if name == "events":  # a renamed label is its event's name, too
        before = {file: [row.replace("Give", "Do") for row in rows] for file, rows in before.items()}
    if name == "notes":  # in code points
        places = {"8 15": "7 14", "28 35": "27 34"}
        rows = before["1.ann"]
        before["1.ann"] = [next((row.replace(*one) for one in places.items() if one[0] in row), row) for row in rows]
    assert after == before
    convert_brat(tmp_path / "out", tmp_path / "again", how)
    merge_data([tmp_path / "again/datasets.yml"], tmp_path / "back", Settings())
    assert [(doc.text, doc.spans) for doc in read_corpus(tmp_path / "back")] == [
        (doc.text, doc.spans) for doc in read_corpus(tmp_path / "corpus")
    ]


def test_an_edit_takes_the_lines_that_name_its_span_and_no_other(tmp_path):
    """A rejected trigger takes its event, what has the event as an argument, and notes on these."""
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
    kept = [row for row in rows if not row.startswith(("T1\t", "T3\t", "E2", "R1", "A1", "#1"))]
    assert lines_of(tmp_path / "out") == {"d/1.ann": [*kept, "T8\tSign 3 8\tfever"]}
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
    """Of annotators or labels, no folder gets the spans of another; of versions, earlier ones stay as they are."""
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
        "T1\tDrug 15 22\taspirin\nT2\tStop 42 49\tstopped\nE1\tStop:T2 Theme:T1 Theme2:T1\nR1\tHas Arg1:T1 Arg2:E1\n"
        "A1\tNew T1\nA2\tSure T1 very\nA3\tSure T2 not\n"
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
        "Has\tArg1:<ANY>, Arg2:<ANY>",
        "",
        "[events]",
        "Stop\tTheme*:<ANY>",
        "",
        "[attributes]",
        "New\tArg:<ANY>",
        "Sure\tArg:<ANY>, Value:not|very",
    ]
