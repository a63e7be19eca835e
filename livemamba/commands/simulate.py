"""`livemamba simulate`: a corpus from the simulated kitchen, in CaptainCook4D's own layout."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from livemamba.errors import InputError
from livemamba.files import check_replaceable
from livemamba.simkitchen.corpus import SPLITS, CorpusSettings, Planned
from livemamba.simkitchen.episodes import Episode
from livemamba.simkitchen.layout import DETAILS_FILE
from livemamba.simkitchen.pace import TIME_FACTOR
from livemamba.simkitchen.rates import NO_MISTAKES, OTHER_RATES, Rates
from livemamba.simkitchen.report import corpus_report
from livemamba.simkitchen.sheets import write_sheets
from livemamba.simkitchen.writer import write_corpus
from livemamba.timeline import MISTAKE_CATEGORIES


def add_parser(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "simulate",
        help="generate a corpus from a simulated kitchen",
        description=(
            "Cook in a simulated kitchen, a proxy for real videos, and write what happened in CaptainCook4D's own "
            f"layout: annotations, task graphs, splits, videos/*.mp4, and {DETAILS_FILE} with the exact times of "
            "mistakes. The same options give the same bytes."
        ),
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make")
    parser.add_argument("--episodes", type=int, default=40, metavar="N", help="over all splits (default 40)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of everything (default 0)")
    parser.add_argument("--size", type=int, default=224, metavar="PX", help="width and height (default 224)")
    parser.add_argument("--fps", type=int, default=10, metavar="N", help="pictures a second (default 10)")
    parser.add_argument(
        "--time-factor",
        type=float,
        default=TIME_FACTOR,
        metavar="F",
        help=f"how much faster than a real kitchen (default {TIME_FACTOR})",
    )
    parser.add_argument(
        "--mistakes", type=float, default=1.0, metavar="X", help="so many times the real set's mistakes (default 1)"
    )
    parser.add_argument(
        "--rate",
        dest="rates",
        action="append",
        default=[],
        metavar="NAME=SHARE",
        help=f"a share of the steps: {', '.join((*MISTAKE_CATEGORIES, *OTHER_RATES))}; may be repeated",
    )
    parser.add_argument("--split", choices=SPLITS, help="all episodes in one split (default: a share in each)")
    parser.add_argument("--varied", action="store_true", help="a recipe of its own for every episode (for training)")
    parser.add_argument("--no-video", action="store_true", help="annotations only")
    parser.add_argument(
        "--states", action="store_true", help="also the world's state at every tick, states/*.npy (for training)"
    )
    parser.add_argument("--sheet", action="store_true", help="instead: contact sheets of every act and mistake")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that render (default 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace a corpus that is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Generate, then report."""
    out = Path(arguments.out)
    replaces = DETAILS_FILE if arguments.overwrite else None
    check_replaceable(out, replaces=replaces)
    if arguments.sheet:
        for path in write_sheets(out, size=arguments.size, seed=arguments.seed):
            print(path)
        return 0
    settings = CorpusSettings(
        episodes=arguments.episodes,
        seed=arguments.seed,
        time_factor=arguments.time_factor,
        rates=_rates(arguments.mistakes, arguments.rates),
        only=arguments.split or "",
        varied=arguments.varied,
    )
    began = time.perf_counter()
    with tqdm(unit="episode", desc="cooking", disable=None, leave=False, dynamic_ncols=True) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        played = write_corpus(
            out,
            settings,
            size=arguments.size,
            fps=arguments.fps,
            video=not arguments.no_video,
            with_states=arguments.states,
            workers=arguments.workers,
            overwrite=arguments.overwrite,
            progress=show,
        )
    print(corpus_report(played, settings))
    print(_gate(out, played, settings.time_factor))
    print(f"written to {out} in {time.perf_counter() - began:.1f} s")
    return 0


def _gate(out: Path, played: Sequence[tuple[Planned, Episode]], time_factor: float) -> str:
    from livemamba.simkitchen.gate import time_scale_gate

    if not {"train", "test"} <= {planned.split for planned, _ in played}:
        return "time-scale gate: not measured, it needs episodes in train and in test"
    return time_scale_gate(out, time_factor).text()


def _rates(factor: float, named: Sequence[str]) -> Rates:
    if not factor >= 0:
        raise InputError(f"--mistakes is {factor:g}; give 0 (none) or more")
    rates = NO_MISTAKES if factor == 0 else Rates().scaled(factor)
    for text in named:
        name, _, share = text.partition("=")
        try:
            rates = rates.with_rate(name, float(share))
        except InputError as error:
            raise InputError(f"--rate {text}: {error}") from None
        except ValueError:
            raise InputError(f"--rate {text!r} is not of the form NAME=SHARE, such as skip=0.1") from None
    return rates
