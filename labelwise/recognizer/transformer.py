"""A pipeline's transformer, run by the one component that listens to it, for all texts of a batch at a time.

spacy-transformers hands its output on text by text: each one is cut out of the batch, aligned with its tokens, and
given a gradient of its own. That takes a GPU a dozen small tasks and a wait for each text, and the CPU longer than the
GPU computes. Here the tables that align a batch are made on the CPU, and used once; what is computed is the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.types import Ragged

from labelwise.recognizer.per_label import averaging
from labelwise.recognizer.wordpieces import PaddedPieces, Pieces, Wordpieces


class JoinedTransformer:
    """A transformer as a part of the model that listens to it: it is given Docs, or wordpieces, and gives vectors.

    transformer (Any): the component, which has nothing else to do meanwhile.
    wordpieces (Wordpieces): what finds those of Docs.
    """

    def __init__(self, transformer: Any, pooling: Model, grad_factor: float) -> None:
        """Take the component, and how the listener makes a token's vector of those of its wordpieces."""
        self.transformer = transformer
        self.wordpieces = Wordpieces(transformer.model.tokenizer, transformer.model.attrs["get_spans"])
        self.pooling = pooling
        self.grad_factor = grad_factor
        self.losses: dict[str, float] = {}

    def update(self, examples: Sequence[Any], *, losses: dict[str, float], **options: Any) -> dict[str, float]:
        """Take note of the losses in place of the component, which would run the model."""
        self.losses = losses
        losses.setdefault(self.transformer.name, 0.0)
        return losses

    def pipe(self, docs: Iterable[Doc], **options: Any) -> Iterable[Doc]:
        """Pass Docs on in place of the component."""
        return docs

    def forward(self, layer: Model, inputs: Sequence[Doc | Pieces], is_train: bool) -> tuple[list[Any], Callable]:
        """Give the vectors of the tokens of each text, as a layer of thinc's."""
        texts = [self.wordpieces.of(one) if isinstance(one, Doc) else one for one in inputs]
        if is_train:
            return self._run(layer.ops, texts, is_train)
        nothing = layer.ops.alloc_f((0, self.transformer.model.get_dim("nO")))
        found: list[Any] = [nothing] * len(texts)
        for part in self._parts(texts):
            vectors, _ = self._run(layer.ops, [texts[number] for number in part], is_train)
            for number, own in zip(part, vectors, strict=True):
                found[number] = own
        return found, lambda gradients: []

    def _run(self, ops: Any, texts: Sequence[Pieces], is_train: bool) -> tuple[list[Any], Callable]:
        """Run the transformer for texts at once."""
        from thinc.api import torch2xp, xp2torch

        padded = self.wordpieces.pad(texts)
        counts = np.array([len(text.lengths) for text in texts], "int32")
        output, backprop_transformer = self.transformer.model.layers[0](as_batch(padded), is_train)
        hidden: Any = torch2xp(output.last_hidden_state, ops=ops)
        # The kernels of thinc know single precision alone; a pipeline that was trained in fp16 may predict in it.
        X = hidden.reshape(-1, hidden.shape[-1]).astype("float32", copy=False)
        places = ops.asarray(padded.places)
        if not len(padded.places):  # of white space alone, for which kernels aren't made
            return ops.unflatten(ops.alloc_f((counts.sum(), X.shape[1])), counts), lambda gradients: []
        pooled, backprop_pooling = self._pool(ops, X[places], padded.lengths, is_train)

        def backprop(gradients: list[Any]) -> list[Any]:
            """Add up the gradients of each wordpiece's vector, and give them to the transformer."""
            dX = ops.alloc_f(X.shape)
            d_pieces = backprop_pooling(ops.flatten(gradients))
            ops.scatter_add(dX, places, d_pieces * self.grad_factor if self.grad_factor != 1 else d_pieces)
            # What the component calls its loss; a GPU isn't waited for.
            self.losses[self.transformer.name] = self.losses[self.transformer.name] + (dX**2).sum()
            backprop_transformer({"last_hidden_state": xp2torch(dX.reshape(hidden.shape))})
            return []

        return ops.unflatten(pooled, counts), backprop

    def _pool(self, ops: Any, X: Any, lengths: np.ndarray, is_train: bool) -> tuple[Any, Callable]:
        """Make each token's vector of those of its wordpieces."""
        if isinstance(ops, NumpyOps) or self.pooling.name != "reduce_mean":
            pooled, backprop = self.pooling(Ragged(X, ops.asarray(lengths)), is_train)
            return pooled, lambda gradient: backprop(gradient).dataXd
        # thinc's layer would wait for the device, to check the lengths, twice on each way.
        tokens = ops.asarray(np.repeat(np.arange(len(lengths), dtype="int32"), lengths))
        divisors = ops.asarray(np.maximum(lengths, 1).astype("float32")[:, None])
        return averaging(ops, lengths)(X), lambda gradient: (gradient / divisors)[tokens]

    def _parts(self, texts: Sequence[Pieces]) -> Iterator[list[int]]:
        """Divide texts that have wordpieces into parts of similar width that the device has room to predict."""
        width = [int(text.sizes.max(initial=0)) for text in texts]
        most = max(self.transformer.cfg["max_batch_items"], cells_for_memory(self.transformer.model.transformer))
        part: list[int] = []
        rows = 0
        for number in sorted(filter(width.__getitem__, range(len(texts))), key=width.__getitem__):
            rows += len(texts[number].sizes)
            if part and rows * width[number] > most:
                yield part
                part, rows = [], len(texts[number].sizes)
            part.append(number)
        if part:
            yield part


def cells_for_memory(module: Any) -> int:
    """Tell how many cells a PyTorch module on a GPU can predict at a time, in a quarter of the memory that is free.

    A layer's attention and its wide hidden layer take some 64 bytes for each number of a wordpiece's vector.
    RETURNS (int): 0 on the CPU.
    """
    import torch

    if module.device.type != "cuda":
        return 0
    free, _ = torch.cuda.mem_get_info(module.device)
    return free // 4 // (64 * module.config.hidden_size)


def as_batch(padded: PaddedPieces) -> Any:
    """Make what spacy-transformers' layer around the model takes."""
    from spacy_transformers.data_classes import WordpieceBatch

    return WordpieceBatch([], padded.ids, padded.mask, [], padded.types)  # type: ignore[arg-type]


@contextmanager
def joined(nlp: Language) -> Iterator[JoinedTransformer | None]:
    """Make a block in which the component that listens to a pipeline's transformer runs it by itself.

    YIELDS (JoinedTransformer | None): None if there is no transformer, or it does more than that: it has several
        listeners, or sets annotations. Nor is one joined that pads on the left.
    """
    layer = find_listener(nlp)
    if layer is None:
        yield None
        return
    import torch

    from labelwise.recognizer.precision import predict_as_trained

    predict_as_trained(nlp)
    torch.backends.cuda.matmul.allow_tf32 = True  # of fp32: enough for training, and several times as fast
    transformer: Any = nlp.get_pipe("transformer")
    to_vectors, before = layer.layers[1], layer._func
    joint = JoinedTransformer(transformer, to_vectors.layers[0], to_vectors.attrs["grad_factor"])
    layer._func, transformer.update, transformer.pipe = joint.forward, joint.update, joint.pipe
    try:
        yield joint
    finally:
        layer._func = before
        del transformer.update, transformer.pipe  # the instance's, which hide the class's


def find_listener(nlp: Language) -> Model | None:
    """Find the layer that listens to the transformer, and makes vectors of tokens; None if it can't be joined."""
    if "transformer" not in nlp.pipe_names:
        return None
    from spacy_transformers.annotation_setters import null_annotation_setter

    transformer: Any = nlp.get_pipe("transformer")
    models = [getattr(component, "model", None) for _, component in nlp.pipeline]
    layers = [
        node
        for model in models
        if isinstance(model, Model)
        for node in model.walk()
        if len(node.layers) == 2 and node.layers[0] in transformer.listeners and node.layers[1].name == "trfs2arrays"
    ]
    plain = transformer.set_extra_annotations is null_annotation_setter
    one = len(layers) == len(transformer.listeners) == 1
    return layers[0] if plain and one and transformer.model.tokenizer.padding_side == "right" else None
