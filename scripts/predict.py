"""See labelwise/commands/predict.py."""

from labelwise.commands.console import run
from labelwise.commands.predict import predict_cli

if __name__ == "__main__":
    run(predict_cli)
