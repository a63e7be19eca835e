"""LiveMamba: a streaming vision-language model that guides a person through a task, live.

Importing this package loads neither torch nor any kernel package; the rooms that need them do.
"""

__version__ = "0.1.0"
