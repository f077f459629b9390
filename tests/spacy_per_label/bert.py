from pathlib import Path

import pytest

# `training.dropout` doesn't change BERT's own dropout.
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def make_bert(folder: Path, **shape: int) -> Path:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    folder.mkdir(exist_ok=True)
    chars = [chr(code) for code in range(33, 127)]
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *chars, *(f"##{char}" for char in chars)]
    (folder / "vocab.txt").write_text("\n".join(vocab))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(len(vocab), num_hidden_layers=2, num_attention_heads=2, **shape)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    return make_bert(tmp_path_factory.mktemp("bert"), hidden_size=32, intermediate_size=64)
