import re
from typing import Any

import pytest

from tests.cases.making import Sentence, jsonl, merge_folder, sentences, table


def labelled(**labels: str) -> str:
    return jsonl(
        {"text": sentence.text, "spans": [span | {"label": labels[span["label"]]} for span in sentence.objects()]}
        for sentence in sentences()
    )


def in_tokens(sentence: Sentence) -> dict[str, Any]:
    spans, place = [], 0
    for token, tag in sentence.tagged:
        if tag != "O":
            spans.append({"start": place, "end": place + len(token), "label": tag})
        place += len(token) + 1
    return {"text": sentence.text, "spans": spans}


def test_spans_with_tags_as_labels_stop(tmp_path):
    rows = [in_tokens(sentence) for sentence in sentences()]
    outcome = merge_folder(tmp_path, {"prodigy/a.jsonl": jsonl(rows)})
    assert outcome.status == 1
    assert (
        "Dataset 'a': its labels look like tags of tokens (BIO, BILOU, BMES): B-DATE (60), B-LOC (60), B-PER (60)"
        in outcome.said
    )
    assert "expect_losses: true" in outcome.printed
    (tmp_path / "assets/prodigy/datasets.yml").open("a").write("  expect_losses: true\n")
    assert merge_folder(tmp_path, {}).status == 0


@pytest.mark.parametrize("labels", [("person-other", "B-cell", "T-cell"), ("B-PER", "B-LOC", "B-DATE")])
def test_names_of_labels_that_look_like_tags_are_labels(tmp_path, labels):
    outcome = merge_folder(
        tmp_path, {"prodigy/a.jsonl": labelled(**dict(zip(("PER", "LOC", "DATE"), labels, strict=True)))}
    )
    assert (outcome.status, outcome.entities) == (0, dict.fromkeys(labels, 60))
    assert "look like tags" not in outcome.said


def test_pieces_of_words_stop(tmp_path):
    """As BERT's tokenizer makes them, each with its own tag."""
    rows = [
        [(piece, tag if not n else "X") for token, tag in sentence.tagged for n, piece in enumerate(cut(token))]
        for sentence in sentences()
    ]
    outcome = merge_folder(tmp_path, {"prodigy/a.conll": table(rows, " ")})
    assert outcome.status == 1
    assert re.search(r"Dataset 'a': its texts have \d+ pieces of words: '##\w+'", outcome.said)


def cut(token: str) -> list[str]:
    return [token[:3], f"##{token[3:]}"] if len(token) > 4 else [token]


def test_a_label_of_most_words_and_sentences_without_a_blank_line_are_named(tmp_path):
    rows = [[(token, "REST" if tag == "O" else tag) for token, tag in sentence.tagged] for sentence in sentences()]
    outcome = merge_folder(tmp_path, {"prodigy/a.conll": table([[*row, ("!", "REST"), ("!", "REST")] for row in rows])})
    assert (outcome.status, outcome.entities["REST"]) == (0, 180)
    assert re.search(r"Dataset 'a': \d+ of \d+ words have the label 'REST'.*write O in its place", outcome.said)
    whole = table([row for sentence in sentences() for row in [sentence.tagged]]).replace("\n\n", "\n")
    outcome = merge_folder(tmp_path / "b", {"prodigy/a.conll": whole})
    assert "Dataset 'a': 60 sentences are one text. Put a blank line after each sentence; or" in outcome.said
    rows = [(str(number), *cells) for number, sentence in enumerate(sentences()) for cells in sentence.tagged]
    numbered = "# global.columns = SENT_ID FORM NER\n" + table([rows])
    assert merge_folder(tmp_path / "c", {"prodigy/a.tsv": numbered}).entities == {"PER": 60, "LOC": 60, "DATE": 60}


def test_a_layer_beside_named_entities_is_read_and_named(tmp_path):
    head = "#FORMAT=WebAnno TSV 3.3\n#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|value\n"
    own = "#T_SP=webanno.custom.Sentiment|polarity\n"
    body = "\n#Text=Ann ran\n1-1\t0-3\tAnn\tPER\t{}\t\n1-2\t4-7\tran\t_\t{}\t\n"
    outcome = merge_folder(tmp_path, {"prodigy/a.tsv": head + own + body.format("_", "*")})
    assert outcome.entities == {"PER": 1, "Sentiment": 1}
    assert "Beside NamedEntity, spans of the layer Sentiment are read in dataset a." in outcome.said
    outcome = merge_folder(tmp_path / "b", {"prodigy/a.tsv": head + body.replace("\t{}", "")})
    assert (outcome.entities, "NamedEntity" in outcome.printed) == ({"PER": 1}, False)
