import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import spacy

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.pipeline import load_pipeline
from labelwise.evaluate.evaluate_pipeline import evaluate_pipeline
from labelwise.merge.rules.policies import Policies
from labelwise.report.page import write_report
from labelwise.why.predicted import MOST, explain, learned_spans, rank
from scripts.why import why_cli
from spacy_per_label.influence import span_gradients
from tests.conftest import Merging, call, save_ruler, task
from tests.why.taught import teach

DRUGS = ("Xanor", "Halcion", "Aspirin", "Prozac", "Valium", "Nexium")
TEXT = "Give him 5 mg Xanor ."


def drug(words: str, **more: object) -> dict:
    start = next(match.start() for match in re.finditer(r"[A-Z]\w+", words) if match.start())
    return task(words, (start, start + len(re.match(r"\w+", words[start:])[0])), label="DRUG", **more)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("project")
    texts = [f"Give her {n} mg {name} ." for n, name in enumerate(DRUGS * 3, 1)]
    rows = [drug(text, _annotator_id="ann") for text in texts]
    rows += [task(f"we met at {hour}:30", _annotator_id="ann") for hour in range(8)]
    # Bob's spans are longer: `annotators: ann, bob` lets the first one count.
    longer = task("Take the Lasix now .", (5, 14), label="DRUG", _annotator_id="bob")
    for name, shown in (("project", root), ("other", root / "other")):
        merging = Merging(shown)
        merging.add("drugs", ["DRUG"], rows if name == "project" else rows[:5])
        merging.add("ann", ["DRUG"], [drug("Take the Lasix now .", _annotator_id="ann")])
        merging.add("bob", ["DRUG"], [longer])
        merging.add("it's", ["DRUG"], [task("Give her 99 mg Xanor .")], split="test")
        merging.run(dev_ratio=0, test_ratio=0, policies=Policies(annotators="ann, bob"))
    (root / "project.yml").write_text("report:\n  annotators: true\n", encoding="utf8")
    teach(root, root / "corpus")
    return root


@pytest.fixture(autouse=True)
def _here(project, monkeypatch) -> None:
    monkeypatch.chdir(project)


def ask(*arguments: object, status: int = 0) -> list[str]:
    return call(why_cli, *arguments, status=status).splitlines()


def test_each_predicted_span_has_ten_spans_of_train_with_their_places_and_no_names(project, tmp_path):
    quiet = tmp_path / "project.yml"
    quiet.write_text("", encoding="utf8")
    head, span, *lines = ask("corpus", "--predicted", "cpu", "--project", quiet, TEXT)
    assert head == f"Text {TEXT!r}"
    assert re.fullmatch(r"  DRUG 'Xanor' \[14, 19\]: [01]\.\d\d", span)
    scored, places = lines[::2], lines[1::2]
    assert len(scored) == len(places) == MOST
    scores = [float(line.split()[0]) for line in scored]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0
    for shown, place in zip(scored, places, strict=True):
        number = int(re.fullmatch(r"      drugs\.jsonl:(\d+), dataset drugs", place)[1])
        assert shown[9:] == f"Give her {number} mg [{DRUGS[(number - 1) % 6]}] ."
    named = ask("corpus", "--predicted", "cpu", TEXT)
    assert named[3] == f"{places[0]}, ann"


def test_the_scores_are_the_cosines_of_all_gradients(project):
    nlp = load_pipeline(project / "training/cpu/model-best")
    ner = nlp.get_pipe("ner")
    [[predicted]] = explain(project / "training/cpu/model-best", project / "corpus", [TEXT])

    def gradient(text: str, start: int) -> np.ndarray:
        row = span_gradients(ner, [nlp(text)], [(start, start + 1, 0)])[0]
        return row / np.linalg.norm(row)

    texts = [f"Give her {n} mg {name} ." for n, name in enumerate(DRUGS * 3, 1)]
    mine = gradient(TEXT, 4)
    every = [gradient(text, 4) @ mine for text in texts] + [gradient("Take the Lasix now .", 2) @ mine]
    expected = sorted(every, reverse=True)[:MOST]
    np.testing.assert_allclose([span.score for span in predicted.speaking], expected, atol=1e-4)
    # What speaks against it is what speaks for the opposite.
    [against] = rank(nlp, project / "corpus", [0], -span_gradients(ner, [nlp(TEXT)], [(4, 5, 0)]))
    assert [-one.score for one in against] == pytest.approx([one for one in sorted(every) if one < 0][:MOST], abs=1e-4)


def test_of_nested_spans_of_a_label_the_longest_is_named_as_it_is_the_one_learned(merging):
    nested = [task("big red cat", (4, 7), (0, 7), (8, 11)), task("old dog", (4, 7))]
    merging.add("a", ["A"], nested)
    merging.add("b", ["B"], [task("big red cat", (4, 7), label="B")])
    merging.run(dev_ratio=0, test_ratio=0)
    docs = [doc for partition in find_partitions(merging.root / "corpus/train") for doc in read_stored_docs(partition)]
    learned = {(place, doc.text[start:end]) for place, doc, start, end, _ in learned_spans(docs, ["B", "A"], {1})}
    first = 2 if docs[0].text == "old dog" else 0
    dog = (1, 2, 1) if first else (4, 5, 1)
    assert learned == {((first, first + 2, 1), "big red"), ((first + 2, first + 3, 1), "cat"), (dog, "dog")}


def test_a_place_names_its_text_and_a_span_the_one_that_it_replaced(project):
    lines = ask("corpus", "--predicted", "cpu", "ann.jsonl:1")
    assert lines[0] == "Text 'Take the Lasix now .'"
    own = next(n for n, line in enumerate(lines) if line.endswith("Take the [Lasix] now ."))
    assert lines[own + 1 : own + 3] == [
        "      ann.jsonl:1, dataset ann, ann",
        "        instead of DRUG 'the Lasix' [5, 14], bob.jsonl:1, dataset bob: outvoted; "
        "decided by `annotators: ann, bob` in project.yml",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["other/corpus", "--predicted", "cpu", TEXT], "trained on another corpus than other/corpus"),
        (["corpus", "--predicted", "rules", TEXT], "no head for each label; name a pipeline that has, such as cpu"),
        (["corpus", "--predicted", "none", TEXT], "no trained pipeline"),
        (["corpus", "--predicted", "cpu"], "give a text in quotes, or a file and line"),
        (["corpus", "--predicted", "cpu", "drugs.jsonl:99"], "corpus has nothing at that line"),
        (["corpus", "--predicted", "cpu", "--problems", TEXT], "or else --problems"),
    ],
)
def test_what_cannot_be_explained_is_refused(arguments, message, project):
    if "rules" in arguments:
        (project / "training/rules").mkdir()
        folder = save_ruler(project / "training/rules/model-best", ("DRUG", "Xanor"), nlp=spacy.blank("xx"))
        (folder / "trained.json").write_bytes((project / "training/cpu/model-best/trained.json").read_bytes())
    assert message in " ".join(ask(*arguments, status=1))


def test_a_text_without_a_predicted_span_says_so_and_a_time_is_no_line(project):
    assert ask("corpus", "--predicted", "cpu", "--at", 19, TEXT)[0].endswith(": no span is predicted")
    assert ask("corpus", "--predicted", "cpu", "--at", 18, TEXT)[1].startswith("  DRUG 'Xanor'")
    assert ask("corpus", "--predicted", "cpu", "we met at 10:30") == ["Text 'we met at 10:30': no span is predicted"]


def test_the_report_has_the_line_that_asks_for_an_error(project):
    out = project / "report.html"
    evaluate_pipeline(
        Path("training/cpu/model-best"), Path("corpus/test"), Path("metrics/cpu.json"), tables=Path("training/cpu")
    )
    write_report(project, "cpu", out)
    cards = json.loads(re.search(r'(?s)id="cards"[^>]*>(.*?)</script>', out.read_text(encoding="utf8"))[1])
    [line] = {mistake["why"] for mistake in cards["mistakes"]}
    assert line == """python -m scripts.why corpus 'it'"'"'s.jsonl:1' --predicted cpu --at 15"""
    assert ask(*shlex.split(line)[3:])[:2] == ["Text 'Give her 99 mg Xanor .'", "  DRUG 'Xanor' [15, 20]: 1.00"]
