"""`train`, with the batcher of `benchmarks.training_speed` and the readers of `benchmarks.loaders`."""

import scripts  # noqa: F401  prepares the process

if __name__ == "__main__":
    import benchmarks.loaders  # noqa: F401  registers them
    from labelwise.base.console import run
    from scripts.train import train_cli

    run(train_cli)
