"""The error for problems that users can fix."""


class InputError(ValueError):
    """Unusable input or setting; the message names it and a remedy.

    Command lines print it without a traceback. Any other exception is a bug.
    """
