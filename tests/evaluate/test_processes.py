"""A transformer predicts in several processes, though PyTorch's threads aren't forked."""

import pytest

from labelwise.train.recipe import Recipe
from labelwise.train.run import train_pipeline
from tests.conftest import ROOT, run_python


@pytest.mark.long
def test_a_transformer_predicts_in_processes(demo_corpus, tiny_bert, tmp_path):
    """Workers that wait for threads of the process that loaded the pipeline would wait forever.

    The matrices of this BERT are large enough for PyTorch to use threads.
    """
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(tmp_path / "bert")
    shape = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256}
    bert = transformers.BertModel(transformers.BertConfig(vocab_size=len(tokenizer), **shape))
    bert.save_pretrained(tmp_path / "bert")
    overrides = {
        "components.per_label.model.tok2vec.name": str(tmp_path / "bert"),
        "training.max_steps": 1,
        "training.eval_frequency": 1,
        "training.batcher.size": 500,
        "corpora.dev.limit": 1,
    }
    recipe = Recipe(ROOT / "configs" / "gpu.cfg", demo_corpus, overrides=overrides)
    train_pipeline(recipe, tmp_path / "model", tmp_path / "curve.tsv")
    for workers in (1, 2):
        arguments = [tmp_path / "model", demo_corpus / "train", tmp_path / f"{workers}.json", "--workers", workers]
        run_python("-m", "scripts.evaluate", *arguments, "--predictions", tmp_path / f"{workers}.jsonl")
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
