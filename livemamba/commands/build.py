"""`livemamba build`: data sets from the annotations of a corpus."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import livemamba
from livemamba.files import check_replaceable, whole_folder

if TYPE_CHECKING:
    from livemamba.data.benchmark_counts import Comparison
    from livemamba.data.interactive_cooking import Benchmark

REPORT_FILE = "report.json"


def add_parser(commands: Any) -> None:
    """Say what the command takes."""
    parser = commands.add_parser("build", help="build a data set", description="Build a data set from annotations.")
    sets = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    cooking = sets.add_parser(
        "interactive-cooking",
        help="the Interactive Cooking benchmark, from CaptainCook4D's annotations",
        description=(
            "Write the Main and the Advanced Planning set as official rows (OUT/<set>/<split>.jsonl) with "
            f"OUT/{REPORT_FILE}, and print every count beside the paper's."
        ),
    )
    cooking.add_argument(
        "--captaincook4d", required=True, metavar="DIR", help="the annotations folder (with annotation_json/)"
    )
    cooking.add_argument("--out", required=True, metavar="OUT", help="the folder to make")
    cooking.add_argument(
        "--mistake-time",
        choices=("end", "middle", "exact"),
        default="end",
        help=(
            "where a mistake is put in its action; the official times were set by hand (default end; exact: when it "
            "can be seen, in simulated corpora)"
        ),
    )
    cooking.add_argument("--overwrite", action="store_true", help=f"replace a folder that holds a {REPORT_FILE}")
    cooking.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Build the benchmark."""
    from livemamba.data.benchmark_counts import compare, comparison_table
    from livemamba.data.captaincook4d import read_annotations
    from livemamba.data.interactive_cooking import build_benchmark

    replaces = REPORT_FILE if arguments.overwrite else None
    check_replaceable(arguments.out, replaces=replaces)
    annotations = read_annotations(arguments.captaincook4d)
    benchmark = build_benchmark(annotations, mistake_time=arguments.mistake_time)
    comparisons = compare(benchmark)
    with whole_folder(arguments.out, replaces=replaces) as partial:
        _write(partial, benchmark, comparisons)
    print(comparison_table(comparisons))
    _print_notes(benchmark)
    when = (
        "when it can be seen" if benchmark.mistake_time == "exact" else f"at the {benchmark.mistake_time} of its action"
    )
    print(f"\nA mistake stands {when}. Written to {arguments.out}")
    return 0


def _write(folder: Path, benchmark: "Benchmark", comparisons: "list[Comparison]") -> None:
    from livemamba.data.benchmark_counts import counts_by_split
    from livemamba.data.official_rows import rows_file, write_rows

    for plan_set, splits in benchmark.videos.items():
        for split, videos in splits.items():
            timelines = (video.timeline for video in videos)
            write_rows(rows_file(folder, plan_set, split), timelines, with_graph=plan_set == "advanced_planning")
    report = {
        "livemamba_version": livemamba.__version__,
        "built_from": "CaptainCook4D annotations",
        "mistake_time": benchmark.mistake_time,
        "counts": {plan_set: counts_by_split(splits) for plan_set, splits in benchmark.videos.items()},
        "beside_the_paper": [comparison.to_dict() for comparison in comparisons],
        "notes": {name: notes.to_dict() for name, notes in benchmark.notes.items()},
    }
    (folder / REPORT_FILE).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _print_notes(benchmark: "Benchmark") -> None:
    print(f"\nLeft out or mended (places in {REPORT_FILE})")
    for name, notes in benchmark.notes.items():
        for reason, count in notes.counts.items():
            print(f"  {name:<18}{count:>5}  {reason}")
