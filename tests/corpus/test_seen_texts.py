"""The digests that a pipeline has of its training's texts: their form, and what is found in them."""

import hashlib

import numpy as np
import pytest

from labelwise.corpus.seen_texts import SEEN_TEXTS, collect_seen, has_seen, read_seen, write_seen
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.errors import InputError
from labelwise.text import text_key
from tests.conftest import read_docs


def test_the_file_has_eight_bytes_of_each_text_of_train_and_dev_which_are_found(demo_corpus, tmp_path):
    nlp = make_nlp(*read_tokenizer(demo_corpus / "tokenizer.json"))
    texts = {split: [doc.text for doc in read_docs(demo_corpus / split, nlp)] for split in ("train", "dev", "test")}
    write_seen(tmp_path, collect_seen(demo_corpus))
    keys = (hashlib.blake2b(text.encode(), digest_size=12).digest() for text in (*texts["train"], *texts["dev"]))
    assert np.load(tmp_path / SEEN_TEXTS).astype(">u8").tobytes() == b"".join(sorted(key[:8] for key in keys))
    seen = read_seen(tmp_path)
    found = {split: {has_seen(seen, text_key(text.encode()).hex()) for text in texts[split]} for split in texts}
    assert found == {"train": {True}, "dev": {True}, "test": {False}}
    assert not has_seen(seen[:0], text_key(b"").hex())


@pytest.mark.parametrize("content", [b"no array", b"", b"\x93NUMPY\x01\0"])
def test_another_file_of_that_name_is_an_error_that_names_it(tmp_path, content):
    assert read_seen(tmp_path) is None
    (tmp_path / SEEN_TEXTS).write_bytes(content)
    with pytest.raises(InputError, match=rf"{SEEN_TEXTS}: not the digests of a training's texts \(.*; train .* again"):
        read_seen(tmp_path)
