from pathlib import Path

from spacy.training import Example
from thinc.api import fix_random_seed

from labelwise.corpus.docbin_reader import read_stored_docs
from labelwise.corpus.manifest import find_partitions
from labelwise.corpus.record import digest_corpus, write_record
from labelwise.corpus.tokenizer import make_nlp, read_tokenizer
from labelwise.train.reader import make_reference


def teach(root: Path, corpus: Path, name: str = "cpu", steps: int = 30) -> Path:
    fix_random_seed(0)
    nlp = make_nlp(*read_tokenizer(corpus / "tokenizer.json"))
    nlp.add_pipe("per_label", name="ner")
    stored = [doc for partition in find_partitions(corpus / "train") for doc in read_stored_docs(partition)]
    references = [make_reference(doc, nlp.vocab) for doc in stored]
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in references]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(steps):
        nlp.update(examples, sgd=optimizer)
    folder = root / "training" / name / "model-best"
    folder.mkdir(parents=True)
    nlp.to_disk(folder)
    write_record(folder, corpus=digest_corpus(corpus))
    return folder
