"""The error for problems that users can fix."""


class InputError(ValueError):
    """Unusable input or setting, named with a remedy; commands print no traceback. Others are bugs."""
