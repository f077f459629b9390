import json
from itertools import combinations, pairwise

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_per_label.bert_weights import adapt_tokenizer, read_encoder
from spacy_per_label.windows import MAX_PADDING, MAX_TABLES, find_own_pieces, find_windows, make_tables, split_rows

NLP = spacy.blank("en")


@pytest.fixture(scope="module")
def tokenizer(tiny_bert) -> str:
    return adapt_tokenizer(read_encoder(str(tiny_bert)).tokenizer)


@pytest.mark.parametrize("count", [5, 40, 200])
def test_windows_have_each_token_once_and_its_neighbours(tokenizer, count):
    doc = Doc(NLP.vocab, [("Ann", "met", "Bob", "in", "Rome", ",", "paid", "30", "\n")[n % 9] for n in range(count)])
    whole = [piece for window in find_windows(doc, tokenizer, 5000, 5) for piece in window.ids[1:-1]]
    windows, own = find_windows(doc, tokenizer, 30, 5), []
    for window in windows:
        pieces = window.ids[window.first : window.first + window.counts.sum()]
        own += pieces.tolist()
        assert len(window.ids) <= 30 + 4  # a word is never cut
    assert own == whole
    found, counts = find_own_pieces(windows)
    assert np.concatenate([window.ids for window in windows])[found].tolist() == whole
    assert counts.tolist() == [len(token.text.strip()) for token in doc]
    for before, after in pairwise(windows):
        assert len(before.ids) - before.first - before.counts.sum() - 1 == 5  # wordpieces of context behind
        assert after.first - 1 == 5


@pytest.mark.parametrize(("before", "after"), [([], []), ([], [2, 3]), ([2], []), ([2, 3], [3])])
def test_a_window_begins_and_ends_as_the_tokenizer_has_it(tokenizer, before, after):
    """XLNet has both special wordpieces behind the text, GPT-2 none."""
    content, names = json.loads(tokenizer), {2: "[CLS]", 3: "[SEP]"}
    special = [{"SpecialToken": {"id": names[number], "type_id": 0}} for number in (*before, *after)]
    content["post_processor"]["single"] = [
        *special[: len(before)],
        {"Sequence": {"id": "A", "type_id": 0}},
        *special[len(before) :],
    ]
    [window] = find_windows(NLP.make_doc("a b"), json.dumps(content), 40, 5)
    [plain] = find_windows(NLP.make_doc("a b"), tokenizer, 40, 5)
    assert window.ids.tolist() == [*before, *plain.ids[1:-1], *after]
    assert window.first == len(before)


def cells_of(lengths: list[int], cuts: tuple[int, ...]) -> int:
    """Count the cells of padded tables: sorted rows, cut before some numbers."""
    places = [0, *cuts, len(lengths)]
    return sum((end - start) * lengths[end - 1] for start, end in pairwise(places))


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_split_into_the_tables_that_have_the_fewest_cells(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 200, 9) if seed % 3 else rng.integers(1, 4, 9) * 50
    tables = split_rows(lengths)
    assert sorted(np.concatenate(tables).tolist()) == list(range(9))
    assert all(rows.tolist() == sorted(rows.tolist()) for rows in tables)
    cells = [len(rows) * int(lengths[rows].max()) for rows in tables]
    row_lengths = sorted(lengths.tolist())
    best = [min(cells_of(row_lengths, cuts) for cuts in combinations(range(1, 9), more)) for more in range(MAX_TABLES)]
    enough = [number for number, fewest in enumerate(best, 1) if lengths.sum() >= (1 - MAX_PADDING) * fewest]
    assert len(tables) == (enough[0] if enough else MAX_TABLES)
    assert sum(cells) == best[len(tables) - 1]


def test_windows_of_many_lengths_are_hardly_padded_and_each_wordpiece_has_its_cell(tokenizer):
    docs = [NLP.make_doc("abcde " * words) for words in (1, 2, 24, 3, 20, 1, 1, 25, 2)]
    windows = [window for doc in docs for window in find_windows(doc, tokenizer, 128, 16)]
    tables, cells = make_tables(windows, 0)
    assert len(tables) > 1
    ids, mask = (np.concatenate([table[part].ravel() for table in tables]) for part in (0, 1))
    assert 1 - mask.sum() / len(mask) < 0.22
    assert ids[cells].tolist() == np.concatenate([window.ids for window in windows]).tolist()
    assert mask[cells].all()
    assert mask.sum() == len(cells) == len(set(cells.tolist()))
    assert not ids[mask == 0].any()
