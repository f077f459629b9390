"""These tests need nothing of labelwise: `pytest --confcutdir tests/spacy_per_label tests/spacy_per_label`."""

from tests.spacy_per_label.bert import tiny_bert  # noqa: F401  a fixture
