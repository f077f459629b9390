from tests.guarantees import GUARANTEES, PAGE, held_by, write_page


def test_each_guarantee_has_a_test_that_make_test_runs():
    marks = held_by()
    assert marks.keys() == GUARANTEES.keys()
    assert [name for name, files in marks.items() if not any(files.values())] == []


def test_the_page_is_in_step():
    assert PAGE.read_text(encoding="utf8") == write_page(), "python -m tests.guarantees"
