"""Errors that a user can cause. The command line prints them as one line, without a traceback.

A message names the thing, the rule and the remedy. What is our own fault stays an AssertionError or
whatever Python raises, traceback included.
"""


class UserError(Exception):
    """Base of everything a user can cause and mend."""


class InputError(UserError, ValueError):
    """A value, file content or combination that breaks a stated rule."""


class MissingError(UserError, FileNotFoundError):
    """A file or folder that was named and is not there."""

    def __str__(self) -> str:  # FileNotFoundError would format its arguments as errno and name
        return str(self.args[0]) if self.args else ""
