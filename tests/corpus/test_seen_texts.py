"""The digests that a pipeline has of its training's texts: another file in their place."""

import pytest

from labelwise.corpus.seen_texts import SEEN_TEXTS, read_seen
from labelwise.errors import InputError


@pytest.mark.parametrize("content", [b"no array", b"", b"\x93NUMPY\x01\0"])
def test_another_file_of_that_name_is_an_error_that_names_it(tmp_path, content):
    assert read_seen(tmp_path) is None
    (tmp_path / SEEN_TEXTS).write_bytes(content)
    with pytest.raises(InputError, match=rf"{SEEN_TEXTS}: not the digests of a training's texts \(.*; train .* again"):
        read_seen(tmp_path)
