"""Raw texts, as far as predicting them doesn't look: how many there are."""

import gzip

from labelwise.sources.raw_texts import count_raw_texts, read_raw_texts


def test_texts_are_counted_before_they_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntext")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/b.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    with gzip.open(tmp_path / "below/c.jsonl.gz", "wt") as file:
        file.write('{"text": "one"}\n' * 3)
    (tmp_path / "d.csv").write_text("text\none\n")
    assert count_raw_texts([tmp_path]) == len([*read_raw_texts([tmp_path])]) == 6
    (tmp_path / "below/c.jsonl.gz").write_bytes(b"no gzip")  # whoever reads it says so
    assert count_raw_texts([tmp_path / "below"]) == 2
