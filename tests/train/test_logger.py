"""What training prints, and the files that it writes."""

import io

import spacy

from labelwise.train.logger import make_logger
from tests.train.training import train_in

INFO = {
    "epoch": 12345,
    "step": 99_999,
    "words": 7,
    "losses": {"tok2vec": 1.0, "ner": 271948.0},
    "score": 0.5,
    "other_scores": {"ents_f": 0.5, "ents_p": 1.0, "ents_r": 0.25},
    "resources": {"seconds": "1.0", "step": 3, "words_per_second": 99_999, "memory_mb": 9_999},
}


def test_rows_fit_a_terminal_and_files_have_a_line_for_each(tmp_path):
    """At the end of a day's training in half precision; steps that aren't evaluated have none."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec")
    nlp.add_pipe("ner")
    nlp.config["training"] |= {"max_steps": 600, "score_weights": {"ents_f": 1.0, "ents_p": 0.0, "cats": None}}
    shown = io.StringIO()
    curve, resources = tmp_path / "curve.tsv", tmp_path / "resources.tsv"
    for _ in range(2):  # a training that is resumed goes on with its files
        log, close = make_logger(str(curve), str(resources))(nlp, shown, io.StringIO())
        for info in (None, {"step": 3, "score": None}, INFO):
            log(info)
        close()
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines[:2]] == [
        ["E", "#", "LOSS", "SCORE", "WORDS/S", "MB"],
        ["12345", "99999", "271948.0", "0.500", "99,999", "9,999"],
    ]
    assert len(lines) == 4
    header, *rows = [line.split("\t") for line in curve.read_text().splitlines()]
    names = ["step", "epoch", "words", "loss_tok2vec", "loss_ner", "score", "ents_f", "ents_p", "ents_r"]
    assert header == names
    assert rows == [["99999", "12345", "7", "1", "271948", "0.5000", "0.5000", "1.0000", "0.2500"]] * 2
    assert resources.read_text() == "seconds\tstep\twords_per_second\tmemory_mb\n" + "1.0\t3\t99999\t9999\n" * 2


def test_a_training_tells_what_the_machine_did(demo_corpus, tmp_path):
    train_in(tmp_path, demo_corpus, resources=tmp_path / "resources.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "resources.tsv").read_text().splitlines()]
    assert header == ["seconds", "step", "words_per_second", "memory_mb", "waiting_percent"]
    assert [row[1] for row in rows] == ["2", "4", "6"]
    assert all(int(row[2]) > 100 and int(row[3]) > 100 for row in rows)
