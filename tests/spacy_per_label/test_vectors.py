import json
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_per_label.hub_files import NoModelError
from spacy_per_label.vectors import write_table
from spacy_per_label.words import Pieces

save_file = pytest.importorskip("safetensors.numpy").save_file

WORDPIECE = {
    "type": "WordPiece",
    "continuing_subword_prefix": "##",
    "vocab": {"cell": 0, "##s": 1, "un": 2, "##cell": 3},
}
BYTES = {"type": "BPE", "vocab": {"Ġcell": 0, "s": 1, "Ġun": 2, "cell": 3, "ĠÃ©": 4, "Ã": 5}}
UNIGRAM = {"type": "Unigram", "vocab": [["▁cell", -1.0], ["s", -2.0], ["▁un", -2.5], ["cell", -3.0]]}


def write_transformer(folder: Path, model: dict, width: int = 3) -> Path:
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    rows = np.random.default_rng(0).normal(size=(len(model["vocab"]), width)).astype("float32")
    other = np.zeros((2, width), "float32")
    save_file(
        {"embeddings.position_embeddings.weight": other, "embeddings.word_embeddings.weight": rows},
        folder / "model.safetensors",
    )
    return folder


def read(table: Path) -> tuple[list[str], np.ndarray]:
    with np.load(table) as file:
        return file["pieces"].tobytes().decode().split("\n"), file["vectors"]


@pytest.mark.parametrize("model", [WORDPIECE, BYTES, UNIGRAM], ids=lambda model: model["type"])
def test_wordpieces_become_words_and_what_is_inside_of_words(tmp_path, model):
    folder = write_transformer(tmp_path / "transformer", model)
    out = tmp_path / "vectors.npz"
    assert write_table(str(folder), out) == len(read(out)[0])
    pieces, vectors = read(out)
    assert pieces == ["cell", "##s", "un", "##cell", *(["é"] if model is BYTES else [])]
    assert (vectors.shape, vectors.dtype) == ((len(pieces), 3), np.float16)


def test_pca_keeps_distances_in_the_directions_that_vary(tmp_path):
    folder = write_transformer(tmp_path / "transformer", WORDPIECE, width=3)
    write_table(str(folder), tmp_path / "all.npz")
    write_table(str(folder), tmp_path / "two.npz", width=2)
    rows = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    vectors = read(tmp_path / "all.npz")[1].astype(float)
    distances, kept = (np.linalg.norm(table[:, None] - table, axis=-1) for table in (rows, vectors))
    assert np.allclose(distances / distances.max(), kept / kept.max(), atol=0.01)
    assert read(tmp_path / "two.npz")[1].shape == (4, 2)


def test_a_spacy_pipelines_words_have_their_rows(tmp_path):
    nlp = spacy.blank("en")
    for word, vector in (("cell", [1, 0]), ("Cell", [0, 1]), ("un", [0.5, 0.5])):
        nlp.vocab.set_vector(word, np.array(vector, "float32"))
    nlp.to_disk(tmp_path / "pipeline")
    write_table(str(tmp_path / "pipeline"), tmp_path / "vectors.npz")
    words, vectors = read(tmp_path / "vectors.npz")
    assert set(words) == {"cell", "Cell", "un"}
    assert vectors.shape == (3, 2)


@pytest.mark.parametrize("name", ["no-such-package", "wasabi", "/no/such/folder"])
def test_what_has_no_vectors_is_refused(tmp_path, name):
    with pytest.raises(NoModelError, match="neither a package nor a folder"):
        write_table(name, tmp_path / "vectors.npz")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("cell", ["cell"]),
        ("CELLS", ["cell", "##s"]),  # small letters need fewer
        ("uncells", ["un", "##cell", "##s"]),
        ("céll", ["cell"]),
        ("un%s", ["un", "##s"]),  # there is no % at all
        ("%", []),
    ],
)
def test_a_form_is_its_longest_pieces(form, expected):
    pieces = ["cell", "##s", "un", "##cell"]
    found = Pieces("\n".join(pieces)).split(form)
    assert [pieces[row] for row in found] == expected


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", '{"model": {}}', r"tokenizer\.json: a tokenizer without a vocabulary; take another"),
        ("model.safetensors", None, r"no \*\.safetensors embeds 4 wordpieces; take another one"),
        ("tokenizer.json", None, "it has no vectors of words; take another pipeline"),
    ],
)
def test_what_lacks_vectors_is_named(file, content, message, tmp_path):
    folder = write_transformer(tmp_path / "one", WORDPIECE)
    spacy.blank("en").to_disk(folder)
    (folder / file).write_text(content) if content else (folder / file).unlink()
    with pytest.raises(NoModelError, match=message):
        write_table(str(folder), tmp_path / "vectors.npz")
