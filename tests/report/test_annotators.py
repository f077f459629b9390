import pytest

from labelwise.report.annotators import Agreed, read_annotators
from labelwise.report.page import write_report
from tests.conftest import Merging, task
from tests.report.report_inputs import make_docs, write_results

ANN, BOB, EVE = ({"_annotator_id": name} for name in ("ann", "bob", "eve"))


def test_each_person_is_compared_with_all_others_on_the_same_texts(tmp_path):
    merging = Merging(tmp_path)
    merging.add(
        "a",
        ["A", "B"],
        [
            task("big cat one", (0, 3, "A"), (4, 7, "B"), **ANN),
            task("big cat one", (0, 3, "A"), **BOB),
            task("big cat one", (0, 3, "A"), (8, 11, "B"), **EVE),
            task("old dog two", (0, 3, "A"), **ANN),
            task("old dog two", (0, 3, "A"), **BOB),
            task("wet owl six", (0, 3, "A"), **EVE),
        ],
    )
    merging.run()
    # Of B, ann has one span, bob none and eve another one; ann and bob agree on A of two texts.
    assert read_annotators(tmp_path / "corpus") == [
        Agreed("eve", 1, pytest.approx(2 * 2 / (4 + 3)), [("B", 0.0), ("A", 1.0)]),
        Agreed("ann", 2, pytest.approx(2 * 3 / (5 + 4)), [("B", 0.0), ("A", 1.0)]),
        Agreed("bob", 2, pytest.approx(2 * 3 / (4 + 4)), [("B", 0.0), ("A", 1.0)]),
    ]


def test_without_a_corpus_nobody_is_named(tmp_path):
    assert read_annotators(tmp_path / "corpus") == []


@pytest.mark.parametrize("named", [False, True])
def test_a_page_names_people_only_if_that_is_asked_for(tmp_path, named):
    write_results(tmp_path, make_docs())
    (tmp_path / "training/check/findings.jsonl").unlink()
    merging = Merging(tmp_path)
    rows = [task(f"big cat {n}", (0, 3), **who) for n in range(10) for who in (ANN, BOB, {})]
    merging.add("a", ["A"], [*rows, "{oops"])
    merging.run()
    write_report(tmp_path, "cpu", tmp_path / "page.html", annotators=named)
    page = (tmp_path / "page.html").read_text(encoding="utf8")
    assert ('id="annotators"' in page, ">ann<" in page) == (named, named)
    assert ("were answered by &#39;ann&#39; and anonymously" in page) == named
    assert "1 row or span can&#39;t be used." in page, "it names nobody"
