"""The command line: `livemamba coach | init | inspect | build | simulate`.

What a user can cause is printed as one line, without a traceback, and the exit status isn't 0.
"""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import livemamba
from livemamba.errors import UserError

FAILED = 1
STOPPED = 130  # as shells report a command that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    arguments = _parser().parse_args(argv)
    return run_safely(lambda: arguments.run(arguments))


def run_safely(run: Callable[[], int]) -> int:
    """Run a command or a script; what a user can cause becomes one line on stderr and an exit status.

    Args:
        run: the whole command; returns its exit status. What it writes should appear whole or not at all.
    """
    try:
        with _terminated_like_ctrl_c():
            status = run()
        sys.stdout.flush()
    except UserError as error:
        return _failed(str(error))
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:  # a full disk, a folder that may not be written
        cause = error.strerror or str(error)
        return _failed(f"{error.filename}: {cause}" if error.filename else f"reading or writing failed: {cause}")
    except KeyboardInterrupt:
        print("livemamba: stopped, nothing was written", file=sys.stderr)
        return STOPPED
    return status


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """A polite kill, as service managers and containers send it, cleans up what is half-written too."""

    def on_terminate(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # where signals can't be handled
        yield
        return
    before = signal.signal(signal.SIGTERM, on_terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _failed(message: str) -> int:
    print(f"livemamba: error: {' '.join(message.split())}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="livemamba", description="Guide a person through a task, live: train, evaluate and use LiveMamba."
    )
    parser.add_argument("--version", action="version", version=f"livemamba {livemamba.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Each command's own file says what it takes; the heavy imports wait until it runs.
    from livemamba.commands import build, coach, init, inspect, simulate

    for command in (coach, init, inspect, build, simulate):
        command.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
