"""Check and time a machine, the simplest first: versions, cupy beside PyTorch, thinc's kernels, CUPTI."""

import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.gpu_kit.common import KIT, tell, wait

PACKAGES = "torch cupy-cuda13x numpy thinc spacy spacy-transformers transformers tokenizers huggingface-hub pydantic"
ROWS = 6000  # wordpieces of a step


class Checks:
    """Each public method is a check; it returns its result, or raises an error."""

    def __init__(self, gpu_id: int) -> None:
        import thinc.api
        import torch

        from labelwise.base.device import use_gpu

        use_gpu(gpu_id)
        self.gpu_id, self.on_gpu, self.thinc, self.torch = gpu_id, gpu_id >= 0, thinc.api, torch
        self.ops: Any = thinc.api.get_current_ops()
        self.cpu: Any = thinc.api.NumpyOps(use_blis=False)
        self.xp = self.ops.xp
        self.where = torch.device("cuda:0" if self.on_gpu else "cpu")
        self.rng = np.random.default_rng(0)
        self.X = self.rng.normal(size=(2000, 96)).astype("float32")
        self.lengths = np.array([500, 0, 1300, 200], "int32")

    def milliseconds(self, work: Callable[[], Any], times: int = 20) -> float:
        """Time a function, after a first call."""
        work()
        wait()
        begun = time.perf_counter()
        for _ in range(times):
            work()
        wait()
        return round(1000 * (time.perf_counter() - begun) / times, 3)

    def versions(self) -> Any:
        """List the packages; on a CPU, cupy may be missing."""
        versions: dict[str, str | None] = {}
        for name in PACKAGES.split():
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                if self.on_gpu or not name.startswith("cupy"):
                    raise
                versions[name] = None
        return versions

    def driver(self) -> Any:
        """Name the card and its driver."""
        query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm", "--format=csv,noheader"]
        return subprocess.check_output(query, text=True).strip() if self.on_gpu else "none"

    def device(self) -> Any:
        """Name the card and thinc's ops."""
        from labelwise.train.gpu import device_name

        return device_name(self.gpu_id), type(self.ops).__name__

    def allocator(self) -> Any:
        """Let cupy take its memory from PyTorch."""
        if not self.on_gpu:
            return None
        self.thinc.set_gpu_allocator("pytorch")
        before = self.torch.cuda.memory_allocated()
        array = self.xp.zeros((1000, 1000), "float32")
        return {"torch_sees_bytes_of_cupy": self.torch.cuda.memory_allocated() - before, "size": array.nbytes}

    def same_memory(self) -> Any:
        """Convert between cupy and PyTorch without a copy."""
        array = self.ops.asarray(np.arange(12, dtype="float32").reshape(3, 4))
        tensor = self.thinc.xp2torch(array, device=self.where)
        tensor += 1
        back = self.thinc.torch2xp(tensor)
        back += 1
        wait()
        assert float(array[0, 0]) == 2.0, "cupy and PyTorch don't share memory"
        grad = self.thinc.torch2xp(self.torch.ones(3, device=self.where, requires_grad=True).data)
        return type(back).__name__, type(grad).__name__

    def leak(self) -> Any:
        """Convert 1,000 times, and note the memory."""
        array = self.xp.zeros(2**20, "float32")
        most = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for number in range(1000 if self.on_gpu else 10):
                tensor = self.thinc.xp2torch(array, device=self.where)
                self.thinc.torch2xp(tensor * 1)
                if self.on_gpu and number % 100 == 99:
                    most.append(self.torch.cuda.memory_allocated() // 2**20)
        return {"MB": most, "warnings": sorted({str(warning.message)[:80] for warning in caught})}

    def conversion(self) -> Any:
        """Time the conversions."""
        array = self.xp.zeros(16, "float32")
        tensor = self.thinc.xp2torch(array, device=self.where)
        to_torch = self.milliseconds(lambda: self.thinc.xp2torch(array, device=self.where), 200)
        return {"xp2torch_ms": to_torch, "torch2xp_ms": self.milliseconds(lambda: self.thinc.torch2xp(tensor), 200)}

    def streams(self) -> Any:
        """Compare the streams of cupy and PyTorch."""
        if not self.on_gpu:
            return None
        mine, theirs = self.xp.cuda.get_current_stream().ptr, self.torch.cuda.current_stream().cuda_stream
        assert mine == theirs, (mine, theirs)
        return mine

    def kernels(self) -> Any:
        """Compare thinc's kernels with numpy; the first call compiles all of them."""
        from spacy_per_label.model import text_means

        ops, cpu, X, lengths = self.ops, self.cpu, self.X, self.lengths
        device_X, sizes, begun = ops.asarray(X), ops.asarray(lengths), time.perf_counter()
        mean = ops.reduce_mean(device_X, sizes)
        wait()
        first = time.perf_counter() - begun
        expected = cpu.reduce_mean(X, lengths)
        pairs = {
            "reduce_mean": (mean, expected),
            "backprop_reduce_mean": (
                ops.backprop_reduce_mean(mean, sizes),
                cpu.backprop_reduce_mean(expected, lengths),
            ),
            "seq2col": (ops.seq2col(device_X, 1, lengths=sizes), cpu.seq2col(X, 1, lengths=lengths)),
            "maxout": (ops.maxout(device_X.reshape(2000, 48, 2))[0], cpu.maxout(X.reshape(2000, 48, 2))[0]),
            "gemm": (ops.gemm(device_X, device_X, trans2=True), X @ X.T),
        }
        table, rows = np.zeros((50, 96), "float32"), self.rng.integers(0, 50, 2000).astype("int32")
        added, sums = ops.asarray(table), table.copy()
        ops.scatter_add(added, ops.asarray(rows), device_X)
        np.add.at(sums, rows, X)
        pairs["scatter_add"] = (added, sums)
        owners = np.repeat(np.arange(4, dtype="int32"), lengths)
        pairs["text_means"] = (text_means(ops, device_X, sizes, ops.asarray(owners)), expected)
        errors = {
            name: float(np.abs(ops.to_numpy(one) - other).max() / max(1e-9, np.abs(other).max()))
            for name, (one, other) in pairs.items()
        }
        assert max(errors.values()) < 1e-2, errors
        return {"first_s": round(first, 2), "errors": {name: f"{error:.1e}" for name, error in errors.items()}}

    def loss(self) -> Any:
        """Compare the loss and its gradient with numpy's."""
        from spacy_per_label.loss import loss_and_gradient

        logits = self.rng.normal(size=(400, 18, 5)).astype("float32")
        tags = self.rng.integers(-1, 5, (400, 18)).astype("int8")
        rejected = [(3, 6, 2), (50, 51, 3)]
        gpu_loss, gradient = loss_and_gradient(self.ops.asarray(logits), tags, rejected, self.ops)
        other, expected = loss_and_gradient(logits, tags, rejected, self.cpu)
        assert abs(gpu_loss - other) < 1e-3 * abs(other), (gpu_loss, other)
        assert np.abs(self.ops.to_numpy(gradient) - expected).max() < 1e-4
        return gpu_loss

    def costs(self) -> Any:
        """Time what a step does besides the transformer, in ms."""
        ops, torch, wide = self.ops, self.torch, self.xp.zeros((ROWS, 768), "float32")
        cells, ones = ops.asarray(np.arange(ROWS)), ops.asarray(np.ones(ROWS, "int32"))
        host, texts = np.zeros((ROWS, 90), "int64"), np.full(50, 120, "int32")
        W = self.xp.zeros((768, 384), "float32")

        def reseed_and_draw() -> None:
            self.thinc.fix_random_seed(5)
            ops.get_dropout_mask((ROWS, 128), 0.1)

        def torch_reseed_and_draw() -> None:
            torch.manual_seed(5)
            torch.rand(ROWS, 128, device=self.where)

        works: dict[str, Callable[[], Any]] = {
            "reseed_and_draw": reseed_and_draw,
            "draw": lambda: ops.get_dropout_mask((ROWS, 128), 0.1),
            "torch_reseed_and_draw": torch_reseed_and_draw,
            "gather": lambda: wide[cells],
            "scatter_add": lambda: ops.scatter_add(wide, cells, wide[cells]),
            "reduce_mean_of_pieces": lambda: ops.reduce_mean(wide, ones),
            "reduce_mean_of_texts": lambda: ops.reduce_mean(wide, ops.asarray(texts)),
            "gemm_xp": lambda: ops.gemm(wide, W),
            "asarray_4MB": lambda: ops.asarray(host),
            "to_numpy_2MB": lambda: ops.to_numpy(wide[:682]),
        }
        return {name: self.milliseconds(work, 5) for name, work in works.items()}

    def philox(self) -> Any:
        """Time a seed and a mask with cuRAND's Philox, whose state a seed doesn't have to compute."""
        if not self.on_gpu:
            return None
        random, curand = self.xp.random, self.xp.cuda.curand
        random.set_random_state(random.RandomState(method=curand.CURAND_RNG_PSEUDO_PHILOX4_32_10))

        def reseed_and_draw() -> Any:
            self.thinc.fix_random_seed(5)
            return self.ops.get_dropout_mask((ROWS, 128), 0.1)

        first, second = reseed_and_draw(), reseed_and_draw()
        assert bool((first == second).all()), "a seed doesn't repeat its draws"
        return {"reseed_and_draw": self.milliseconds(reseed_and_draw), "share_kept": float((first > 0).mean())}

    def cupti(self) -> Any:
        """Measure the share of time with a running kernel; the first call loads CUPTI."""
        from benchmarks.gpu import measure_busy

        size = 4096 if self.on_gpu else 64
        matrix = self.torch.zeros((size, size), device=self.where)
        seconds = []
        for _ in range(2):
            begun = time.perf_counter()
            with measure_busy(self.gpu_id) as percent:
                for _ in range(20):
                    matrix = matrix @ matrix
                if self.on_gpu:
                    self.ops.asarray(self.X) * 2  # a kernel of cupy's is seen, too
            seconds.append(round(time.perf_counter() - begun, 2))
        return {"percent": percent, "first_s": seconds[0], "again_s": seconds[1]}

    def scaler(self) -> Any:
        """Unscale gradients after an overflow of one."""
        if not self.on_gpu:
            return None
        scaler = self.thinc.PyTorchGradScaler(enabled=True, init_scale=1024.0)
        scaler.to_(self.where)
        finite = self.torch.full((4,), 1024.0, device=self.where)
        infinite = self.torch.full((2, 2), float("inf"), device=self.where)
        assert not scaler.unscale([finite])
        assert float(finite[0]) == 1.0
        assert scaler.unscale([infinite])
        scaler.update()
        return float(scaler._scale)

    def fused(self) -> Any:
        """Update a tensor by PyTorch's fused AdamW, with moments in cupy's arrays."""
        from torch.optim.adamw import adamw

        parameter = self.torch.ones(5, device=self.where)
        gradient = self.torch.full((5,), 0.5, device=self.where)
        first, second = (self.thinc.xp2torch(self.xp.zeros(5, "float32"), device=self.where) for _ in range(2))
        step = self.torch.tensor(0.0, device=self.where)
        settings: dict[str, Any] = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
        moments, steps = ([first], [second]), [step]
        adamw([parameter], [gradient], *moments, [], steps, fused=True, amsgrad=False, maximize=False, **settings)
        assert abs(float(parameter[0]) - 0.9) < 1e-3, parameter
        return float(parameter[0])

    def products(self) -> Any:
        """Measure TFLOP/s of products in bf16 and in TF32."""
        if not self.on_gpu:
            return None
        tflops = {}
        for dtype in (self.torch.bfloat16, self.torch.float32):
            matrix = self.torch.randn(8192, 8192, device=self.where, dtype=dtype)
            seconds = self.milliseconds(partial(self.torch.matmul, matrix, matrix), 10) / 1000
            tflops[str(dtype)[6:]] = round(2 * 8192**3 / seconds / 1e12)
        return tflops


CHECKS = "versions driver device allocator same_memory leak conversion streams kernels loss costs philox cupti scaler"
CHECKS += " fused products"


def main(gpu_id: int) -> None:
    """Run all checks, also after failures."""
    begun = time.perf_counter()
    import labelwise.train.train_pipeline  # noqa: F401

    commit = KIT / "commit"  # a copy of the tree has no .git
    tell(
        seconds_of_imports=round(time.perf_counter() - begun, 1), commit=commit.is_file() and commit.read_text().strip()
    )
    checks = Checks(gpu_id)
    results: dict[str, Any] = {}
    failed: list[str] = []
    for name in CHECKS.split():
        begun = time.perf_counter()
        try:
            results[name] = getattr(checks, name)()
        except Exception:  # what comes after may work
            failed.append(name)
            traceback.print_exc()
        print(f"{name}: {results.get(name, 'FAILED')} ({time.perf_counter() - begun:.2f} s)", flush=True)
        tell(failed=failed, detail=results)
    for name in ("driver", "cupti", "products"):
        tell(**{name: results.get(name)})
    sys.exit(bool(failed))
