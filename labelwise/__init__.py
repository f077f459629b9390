"""One named-entity model from annotations made label by label; a folder per stage.

Data goes through sources, merge, corpus, train, evaluate; then compare and report. Four functions run these steps from
Python; they, their settings and results are loaded on first use (docs/python.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelwise.base.errors import InputError
    from labelwise.corpus.ledger import Ledger
    from labelwise.evaluate.evaluate_pipeline import Evaluation, evaluate_pipeline
    from labelwise.merge.merge_data import merge_data
    from labelwise.merge.rules.settings import Settings
    from labelwise.report.advice import Advice
    from labelwise.report.page import write_report
    from labelwise.train.train_pipeline import TrainResult, train_pipeline
    from labelwise.train.training_config import TrainingConfig, default_config

__version__ = "0.5.0.dev0"
__all__ = [
    "Advice",
    "Evaluation",
    "InputError",
    "Ledger",
    "Settings",
    "TrainResult",
    "TrainingConfig",
    "default_config",
    "evaluate_pipeline",
    "merge_data",
    "train_pipeline",
    "write_report",
]
_MODULES = {
    "labelwise.base.errors": ("InputError",),
    "labelwise.evaluate.evaluate_pipeline": ("Evaluation", "evaluate_pipeline"),
    "labelwise.corpus.ledger": ("Ledger",),
    "labelwise.merge.rules.settings": ("Settings",),
    "labelwise.merge.merge_data": ("merge_data",),
    "labelwise.report.advice": ("Advice",),
    "labelwise.report.page": ("write_report",),
    "labelwise.train.training_config": ("TrainingConfig", "default_config"),
    "labelwise.train.train_pipeline": ("TrainResult", "train_pipeline"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
