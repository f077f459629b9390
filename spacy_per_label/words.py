"""Character-feature and static embeddings, computed once per distinct word.

A form has five groups of features: the word in lower case; its shape and the word as written; prefixes of up to four
characters; suffixes of up to four; and trigrams. Each feature is hashed to two rows of one trained table (Weinberger et
al., Feature Hashing for Large Scale Multitask Learning, ICML 2009), each group is the sum of its rows, over the root of
their number, and one layer mixes the groups.

An untrained table of vectors holds words, or a transformer's wordpieces. A form that isn't there has the mean of its
longest pieces, so no word is out of vocabulary, and unseen words are treated like training words.
"""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Maxout, Model, uniform_init
from thinc.types import Floats2d

from spacy_per_label.hub_files import setting_named

GROUPS = 5
HASHES = 2
INNER = "##"  # prefix of a piece inside a word
MAX_PIECE_CHARS = 30


@registry.architectures("spacy-per-label.WordEmbed.v1")
def make_word_embed(width: int, rows: int = 12_000, vectors: Path | None = None) -> Model[list[Doc], list[Floats2d]]:
    """Make a layer that embeds a token by its form alone.

    width (int): width of the vectors.
    rows (int): rows of the feature table.
    vectors (Path | None): a table, or a name for `vectors.find_folder`; saved with the pipeline.
    """
    mix: Model = Maxout(nO=width, nP=3, normalize=True, dropout=0.0)
    return Model(
        "word_embed",
        _forward,
        init=_init,
        params={"E": None},
        dims={"nO": width, "nV": rows},
        layers=[mix],
        attrs={"path": str(vectors or ""), "pieces": "", "vectors": np.zeros((1, 0), "float16")},
    )


def _init(model: Model, X: Any = None, Y: Any = None) -> None:
    if model.attrs["path"]:
        from spacy_per_label.vectors import read_table

        with setting_named("vectors", model.attrs["path"]):
            model.attrs["pieces"], model.attrs["vectors"] = read_table(model.attrs["path"])
    model.attrs["path"] = ""
    width = model.get_dim("nO")
    model.layers[0].initialize(X=model.ops.alloc_f((1, GROUPS * width + model.attrs["vectors"].shape[1])))
    model.set_param("E", uniform_init(model.ops, (model.get_dim("nV"), width)))


def _forward(model: Model, docs: list[Doc], is_train: bool) -> tuple[list[Any], Callable]:
    """Compute the vectors of a batch's surface forms, once each, and return each token's."""
    ops: Any = model.ops
    E: Any = model.get_param("E")
    sizes = np.array([len(doc) for doc in docs], "int32")
    orths, places = np.unique(np.concatenate([doc.to_array(ORTH) for doc in docs]), return_inverse=True)
    forms = [docs[0].vocab.strings[orth] for orth in orths.tolist()]
    hashed = [features_of(form) for form in forms]
    keys, counts = np.concatenate([keys for keys, _ in hashed]), np.concatenate([counts for _, counts in hashed])
    halves = np.stack([keys & np.uint64(2**32 - 1), keys >> np.uint64(32)], axis=1)  # HASHES of each feature
    rows = ops.asarray((halves % np.uint64(len(E))).ravel().astype("int32"))
    lengths = ops.asarray(counts * HASHES)
    scales = ops.asarray((1 / np.sqrt(counts))[:, None].astype("float32"))
    X = (ops.reduce_sum(E[rows], lengths) * scales).reshape(len(forms), -1)
    learned = X.shape[1]
    if model.attrs["pieces"]:
        X = ops.xp.concatenate([X, ops.asarray(vectors_of(model, forms))], axis=1)
    Y, backprop_mix = model.layers[0](X, is_train)
    tokens = ops.asarray(places.ravel().astype("int32"))

    def backprop(dYs: list[Any]) -> list[Any]:
        dY = ops.alloc_f(Y.shape)
        ops.scatter_add(dY, tokens, ops.flatten(dYs))
        dX = ops.as_contig(backprop_mix(dY)[:, :learned]).reshape(-1, E.shape[1]) * scales
        dE = ops.alloc_f(E.shape)
        ops.scatter_add(dE, rows, ops.backprop_reduce_sum(dX, lengths))
        model.inc_grad("E", dE)
        return []

    return ops.unflatten(Y[tokens], sizes), backprop


@lru_cache(maxsize=2**14)
def features_of(form: str) -> tuple[np.ndarray, np.ndarray]:
    """Hash the features of a form.

    RETURNS (tuple): 64 bits for each feature, group by group; and the number in each group.
    """
    lowered = form.lower()
    kinds = ("X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign for sign in form[:8])
    limited, longest = f"<{lowered}>", min(len(form), 4) + 1
    groups = (
        [f"w{lowered}"],
        [f"h{''.join(kinds)}", f"f{form}"],
        [f"p{lowered[:size]}" for size in range(1, longest)],
        [f"s{lowered[-size:]}" for size in range(1, longest)],
        [f"g{limited[start : start + 3]}" for start in range(len(limited) - 2)],
    )
    keys = np.array([get_string_id(feature) for group in groups for feature in group], "uint64")
    return keys, np.array([len(group) for group in groups], "int32")


class Pieces:
    """The words and pieces of a table of vectors, with INNER inside of words.

    pieces (str): one per line; the line number is the row.
    """

    def __init__(self, pieces: str) -> None:
        self.rows: dict[str, int] = {}
        for row, piece in enumerate(pieces.split("\n")):
            self.rows.setdefault(piece, row)
        self.split = lru_cache(maxsize=2**14)(self._split)

    def _split(self, form: str) -> list[int]:
        """Find the rows of a form's longest pieces: as written, in lower case, or without accents.

        RETURNS (list[int]): rows of the variant with the fewest pieces, where a character without a piece counts twice.
        """
        lowered = form.lower()
        plain = "".join(sign for sign in unicodedata.normalize("NFD", lowered) if not unicodedata.combining(sign))
        variants = [self._longest(written) for written in dict.fromkeys((form, lowered, plain))]
        return [row for row in min(variants, key=lambda rows: len(rows) + rows.count(-1)) if row >= 0]

    def _longest(self, word: str) -> list[int]:
        rows, start = [], 0
        while start < len(word):
            for end in range(min(len(word), start + MAX_PIECE_CHARS), start, -1):
                part = word[start:end]
                row = self.rows.get(f"{INNER}{part}" if start else part)
                row = self.rows.get(part) if row is None else row
                if row is not None:
                    rows.append(row)
                    break
            else:
                rows.append(-1)
                end = start + 1
            start = end
        return rows


read_pieces = lru_cache(maxsize=4)(Pieces)


def vectors_of(model: Model, forms: list[str]) -> np.ndarray:
    """Average the vectors of each form's pieces; zeros without any."""
    pieces, table = read_pieces(model.attrs["pieces"]), model.attrs["vectors"]
    rows = [pieces.split(form) for form in forms]
    lengths = np.array([len(piece_rows) for piece_rows in rows])
    sums = np.zeros((len(forms), table.shape[1]), "float32")
    np.add.at(
        sums,
        np.repeat(np.arange(len(forms)), lengths),
        table[[row for piece_rows in rows for row in piece_rows]].astype("float32"),
    )
    return sums / np.maximum(lengths, 1, dtype="float32")[:, None]
