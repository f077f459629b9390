"""The error that users can do something about."""


class InputError(ValueError):
    """Input, or a setting, that can't be used; the message names it and a remedy.

    Command lines print it without a traceback. Any other exception is a fault of the program.
    """
