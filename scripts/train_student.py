"""See labelwise/commands/train_student.py."""

from labelwise.commands.console import run
from labelwise.commands.train_student import train_student_cli

if __name__ == "__main__":
    run(train_student_cli)
