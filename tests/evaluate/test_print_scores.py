from labelwise.evaluate.print_scores import print_scores
from labelwise.evaluate.scores import Mistakes
from tests.evaluate.test_ranking import make_metrics


def test_labels_without_f_are_one_line(capsys):
    some = {f"WITH_{n}": Mistakes(9 + n, 1) for n in range(3)}
    print_scores(make_metrics(some | {f"NONE_{n}": Mistakes(spurious=n) for n in range(3)}), "cpu.json")
    printed = capsys.readouterr().out
    table, _, line = printed.partition("ℹ ")
    assert [row.split()[0] for row in table.splitlines() if "WITH" in row or "NONE" in row] == [*some]
    message = "No F1, because there is no gold: NONE_0, NONE_1, NONE_2"
    assert " ".join(line.split()) == message
    print_scores(make_metrics(some | {"UNSCORED": Mistakes(9, 1, unscored=10)}), "cpu.json")
    table, _, line = capsys.readouterr().out.partition("ℹ ")
    assert "UNSCORED" not in table
    assert " ".join(line.split()) == "No F1, because most predictions can't be scored: UNSCORED"
    print_scores(make_metrics(some), "cpu.json")
    assert "No F1" not in capsys.readouterr().out
