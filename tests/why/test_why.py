import re
import unicodedata
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from labelwise.annotations import Reason
from labelwise.corpus.tables import read_groups
from labelwise.corpus.texts import find_doc, read_groups_with_docs
from labelwise.datasets.convert_brat import convert_brat
from labelwise.merge.merge_data import merge_data
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions
from labelwise.why.deciders import DECIDERS
from labelwise.why.find import find
from labelwise.why.tell import tell
from scripts.why import why_cli
from tests.cases.making import merge_folder
from tests.conftest import Merging, call, task
from tests.merge import test_decisions as decisions

TEXT = "Acme Corp Ltd sells 60degC ovens to Bob\nSmith in Rome"
ANN, BOB, CY = ({"_annotator_id": name} for name in ("ann", "bob", "cy"))


def span(words: str, label: str) -> tuple[int, int, str]:
    start = TEXT.index(words)
    return start, start + len(words), label


@pytest.fixture(scope="module")
def merged(tmp_path_factory) -> Merging:
    merging = Merging(tmp_path_factory.mktemp("merged"))
    org = [
        task(TEXT, span("Acme Corp", "ORG"), span("Rome", "ORG"), _timestamp=1, **ANN),
        task(TEXT, span("Acme Corp Ltd", "ORG"), span("Rome", "PLACE"), _timestamp=2, **ANN),
        task(TEXT, span("Acme Corp", "ORG"), _timestamp=3, **BOB),
        task(TEXT, span("Acme Corp", "ORG"), _timestamp=4, **CY),
        task("Nobody knows Ada", (13, 16, "ORG"), answer="ignore"),
        "{oops",
        task("(Ada again", (0, 4, "ORG"), _view_id="classification"),
        task("too long", (0, 300, "ORG")),
    ]
    merging.add("org", ["ORG"], org)
    product = [span(words, "PRODUCT") for words in ("60degC ovens", "Acme Corp", "degC ovens", "degC ovens to")]
    merging.add("product", ["PRODUCT"], [task(TEXT, *product, **BOB, meta={"doc": "news/1.txt"})])
    person = {"_view_id": "ner", **ANN}
    merging.add("person", ["PERSON"], [task(TEXT, span("Bob\nSmith", "PERSON"), answer="reject", **person)])
    merging.add("more", ["PERSON"], [task(TEXT, span("Bob\nSmith", "PERSON"), **person)])
    merging.add("exam", ["ORG"], [task("An exam")], split="test")
    merging.add("lesson", ["ORG"], [task("An exam", (3, 7, "ORG"))], split="train")
    merging.run(dev_ratio=0, test_ratio=0)
    return merging


def ask(merging: Merging, *place: str, status: int = 0) -> list[str]:
    printed = call(why_cli, merging.root / "corpus", *place, "--datasets", merging.root / "tasks", status=status)
    return [line for line in printed.splitlines() if line]


def test_a_row_was_superseded_by_another_one_of_the_same_person(merged):
    head, *lines = ask(merged, "assets/prodigy/org.jsonl:1")
    assert head.endswith(f", document news/1.txt, in train, by a hash of the text and `split_salt`: {flat(TEXT)!r}")
    assert lines == [
        "  org.jsonl:1, dataset org, ann, complete, accept: superseded",
        "    instead: org.jsonl:2, dataset org, ann",
        "    decided by `duplicates: latest` in project.yml, unless the entry of 'org' has its own",
        "    ORG 'Acme Corp' [0, 9]: in superseded task",
        "    ORG 'Rome' [49, 53]: in superseded task",
    ]


def test_a_span_that_a_decision_removed_names_its_line_and_a_question_without_a_note_has_no_colon(merging):
    big, cat = decisions.BIG, decisions.CAT
    merging.add("a", ["A"], [decisions.answer(tuple(big), tuple(cat), label="A")])
    decisions.decide(merging, decisions.row("policy", big, None), decisions.row("gold is wrong", cat, None))
    merging.run()
    assert ask(merging, "a.jsonl:1")[2:] == [
        "    A 'big' [0, 3]: entity",
        "    A 'cat' [4, 7]: removed by a decision: decisions.jsonl:2",
        "      a decision in assets/decisions removed it",
    ]
    assert ask(merging, "--problems")[0] == "a\tdecisions.jsonl:1\tpolicy question: A 'big'"


def test_a_span_that_a_review_overruled_names_the_review_and_what_stands_instead(merging):
    for name, spans in (("ann", [(0, 3)]), ("bob", [(0, 7), (9, 12)])):
        merging.add(name, ["A"], [task("big cat, owl", *spans, _annotator_id=name), task("a cat", (2, 5))])
    reviews = [
        task("big cat, owl", (4, 7), _view_id="review", view_id="ner_manual", **CY, _timestamp=n) for n in (9, 8)
    ]
    merging.add("settled", ["A"], reviews, annotator="cy")
    merging.run()
    by = "      decided by a review: settled.jsonl:1, dataset settled, cy"
    assert ask(merging, "bob.jsonl:1")[2:] == [
        "    A 'big cat' [0, 7]: outvoted",
        "      instead: A 'cat' [4, 7], settled.jsonl:1, dataset settled, cy",
        by,
        "    A 'owl' [9, 12]: outvoted",
        by,
    ]
    assert "decided by a review" not in "".join(ask(merging, "a cat"))


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            2,
            [
                "    ORG 'Acme Corp Ltd' [0, 13]: outvoted",
                "      instead: ORG 'Acme Corp' [0, 9], org.jsonl:3, dataset org, bob",
                "      decided by `annotators: half` in project.yml",
                "    PLACE 'Rome' [49, 53]: undeclared label: PLACE",
                "      decided by `labels` of 'org' in datasets.yml",
            ],
        ),
        (
            4,
            [
                "    ORG 'Acme Corp' [0, 9]: duplicate",
                "      instead: ORG 'Acme Corp' [0, 9], org.jsonl:3, dataset org, bob",
                "      an equal span of another answer counts, once",
            ],
        ),
        (
            6,
            [
                "  org.jsonl:6, dataset org: bad JSON: object keys must be strings (byte 1): 'oops'",
                "    correct the line",
            ],
        ),
        (7, ["    decided by `kind` of 'org' in datasets.yml, or the row's `_view_id` if that is auto"]),
    ],
)
def test_a_line_of_a_file_has_the_winner_and_what_decides(line, expected, merged):
    lines = ask(merged, f"tasks/org.jsonl:{line}")
    start = lines.index(expected[0])
    assert lines[start : start + len(expected)] == expected
    assert not [one for one in lines if one.startswith("  org.jsonl:") and f":{line}," not in one.replace(": ", ":, ")]


def test_a_document_has_all_rows_and_spans_with_the_tokens_that_a_span_cuts(merged):
    lines = ask(merged, "news/1.txt")
    rows = [line.split(",")[0].strip() for line in lines if line.startswith("  ") and line[2] != " "]
    assert rows == [f"org.jsonl:{n}" for n in range(1, 5)] + [
        f"{name}.jsonl:1" for name in ("product", "person", "more")
    ]
    start = lines.index("    PRODUCT 'Acme Corp' [0, 9]: same span; learned by a head for each label")
    assert lines[start + 1 : start + 6] == [
        "      instead: ORG 'Acme Corp' [0, 9], org.jsonl:3, dataset org, bob",
        "      decided by `overlap: longest` in project.yml",
        "    PRODUCT 'degC ovens' [22, 32]: misaligned; inside '60degC'",
        "      decided by `alignment: drop` in project.yml, and `infixes` in configs/tokenizer.yml",
        "    PRODUCT 'degC ovens to' [22, 35]: misaligned; inside '60degC'",
    ]


def test_words_show_their_spans_and_the_answers_without_spans(merged):
    lines = ask(merged, "Bob", "Smith")
    assert lines[-6:] == [
        "  person.jsonl:1, dataset person, ann, binary, reject: merged",
        "    reject PERSON 'Bob\\nSmith' [36, 45]: conflict",
        "      instead: PERSON 'Bob\\nSmith' [36, 45], more.jsonl:1, dataset more, ann",
        "      decided by `conflicts: accept-wins` in project.yml, unless a decision is about the span",
        "  more.jsonl:1, dataset more, ann, binary, accept: merged",
        "    PERSON 'Bob\\nSmith' [36, 45]: entity",
    ]
    assert lines.count("    no span here") == 4
    assert not [line for line in lines[1:] if "Acme" in line]


def test_words_of_a_text_that_is_not_in_the_corpus_are_looked_up_in_the_sources(merged):
    head, *lines = ask(merged, "Nobody knows")
    assert head.endswith(", not in the corpus: no usable answer: 'Nobody knows Ada'")
    row = "  org.jsonl:5, dataset org, complete, ignore: ignored"
    assert lines == [row, "    the annotator ignored it"]
    assert ask(merged, "knows Ada")[-1] == "    ORG [13, 16]: in ignored task", "the merge keeps no words of it"
    found_lines = [line for line in ask(merged, "Ada") if "org.jsonl:" in line]
    assert [line.partition(",")[0].strip() for line in found_lines] == ["org.jsonl:7", "org.jsonl:5"]
    for word in ("Ada", "(Ada"):  # a span in the tables has it
        assert [account.rows[0]["line"] for account in find(merged.root / "corpus", word, [])] == [7]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_are_found_however_their_characters_are_composed(merging, form):
    places = ["Hu\u1ebf", "Hu\u00ea\u0301", "Hue\u0302\u0301", "Hue"]
    rows = [task(f"{place} {n}", (0, len(place), "PLACE")) for n, place in enumerate(places)]
    merging.add("place", ["PLACE"], rows)
    merging.add("unread", ["PLACE"], [task("\u0110\u00e0 L\u1ea1t", answer="ignore")])
    merging.run()
    lines = ask(merging, unicodedata.normalize(form, "Hu\u1ebf"))
    assert sorted(line.partition(",")[0] for line in lines if "dataset" in line) == [
        f"  place.jsonl:{n}" for n in (1, 2, 3)
    ]
    assert "ignored" in "".join(ask(merging, unicodedata.normalize(form, "\u0110\u00e0 L\u1ea1t")))


def test_the_split_is_that_of_the_data_set_which_declares_it(merged):
    lines = ask(merged, "An exam")
    assert lines[-3:] == [
        "    instead: exam.jsonl:1, dataset exam",
        "    decided by `split` of the entries in datasets.yml: test before dev before train",
        "    ORG 'exam' [3, 7]: in split conflict task",
    ]


def test_unconverted_brat_lines_are_listed_with_place(tmp_path):
    (tmp_path / "brat/b").mkdir(parents=True)
    (tmp_path / "brat/b/a.txt").write_text("Ann saw Bob")
    (tmp_path / "brat/b/a.ann").write_text("T1\tA 0 3;8 11\tAnn Bob\nT2\tA 0 3\tAnn\nE1\tA:T2\n")
    convert_brat(tmp_path / "brat", tmp_path / "tasks")
    merging = Merging(tmp_path)
    merge_data([tmp_path / "tasks/datasets.yml"], tmp_path / "corpus", Settings(dev_ratio=0, test_ratio=0))
    assert ask(merging, "assets/brat/b/a.ann:1") == [
        r"    b/a.ann:1, a span: discontinuous: 'T1\tA 0 3;8 11\tAnn Bob'",
        "      decided by `discontinuous` in the section brat of project.yml",
    ]
    own = ["  auto.jsonl:2, dataset brat, complete, accept: merged", "    b/a.ann:2, A 'Ann' [0, 3]: entity"]
    assert ask(merging, "b/a.ann:2")[1:] == own
    assert "at line 2; only lines that begin with T are spans" in flat(" ".join(ask(merging, "b/a.ann:3", status=1)))
    assert ask(merging, "b/a.txt")[1:] == own
    options = {by.split("`")[1] for by in DECIDERS.values() if "the section brat" in by}
    assert options == {"discontinuous", "shifted", "labels", "encoding"} <= {*BratOptions.__struct_fields__}


def test_problems_are_listed_with_data_set_place_reason_and_details(merged):
    printed = call(why_cli, merged.root / "corpus", "--problems")
    *lines, last = printed.splitlines()
    assert last == "✔ 3 rows or spans"
    assert sorted(lines) == [
        "org\torg.jsonl:2\tundeclared label: PLACE",
        "org\torg.jsonl:6\tbad JSON: object keys must be strings (byte 1): 'oops'",
        "org\torg.jsonl:8\tinvalid: ORG 0 300: the text has 8 characters",
    ]


def test_every_reason_says_what_decides():
    assert DECIDERS.keys() == {*Reason}
    inside = {reason for reason in Reason if reason.startswith("in ")}
    assert {reason for reason, said in DECIDERS.items() if not said} == {Reason.MERGED, Reason.ENTITY, *inside}


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (
            ["org.jsonl:99"],
            r"org\.jsonl:99: .*corpus has nothing at that line; the last row or span before it is at line 8; a",
        ),
        (
            ["nowhere"],
            "'nowhere': not found in the files, documents and texts of .*, and the sources that .* declare; give",
        ),
        (["org.jsonl", "--problems"], "give a file and line, a document or words, or else --problems"),
    ],
)
def test_nothing_found_is_an_error_that_names_the_search(place, error, merged):
    assert re.search(error, flat(" ".join(ask(merged, *place, status=1))))


def test_the_line_of_a_token_names_that_of_its_sentence(tmp_path, monkeypatch):
    sentence = "Ann B-PER\nran O\n"
    assert merge_folder(tmp_path, {"prodigy/a.conll": f"{sentence}\n\n{sentence.replace('Ann', 'Bo')}"}).status == 0
    monkeypatch.chdir(tmp_path)
    for line, first in ((2, 1), (6, 5)):
        said = flat(call(why_cli, "corpus", f"a.conll:{line}", status=1))
        assert f"before it is at line {first}; a sentence of a table is at the line of its first token" in said


def test_without_a_merge_the_error_says_to_run_it(tmp_path):
    assert "run the merge" in flat(call(why_cli, tmp_path, "words", status=1))


def test_a_text_is_found_in_its_partition_and_beside_the_tables(demo_corpus):
    assert len([*demo_corpus.glob("train/*.spacy")]) > 2
    seen = 0
    for group, docs in read_groups_with_docs(demo_corpus):
        keys = zip(group.texts["text"].to_pylist(), group.texts["split"].to_pylist(), strict=True)
        for (key, split), (other, doc) in zip(keys, docs, strict=True):
            assert key == other == doc.key
            assert find_doc(demo_corpus, split, key).text == doc.text
            assert find_doc(demo_corpus, split, f"{int(key, 16) ^ 1:024x}") is None
            seen += 1
    assert seen == len(pq.read_table(demo_corpus / "texts.parquet")) == 30


def test_each_span_of_a_corpus_can_be_told_of(merged):
    corpus: Path = merged.root / "corpus"
    settings = msgspec.to_builtins(Settings())
    for group in read_groups(corpus):
        for row in group.rows.to_pylist():
            lines = [
                line for account in find(corpus, f"{row['file']}:{row['line']}", []) for line in tell(account, settings)
            ]
            assert any(row["reason"] in line for line in lines)
