"""Run a LiveMamba checkpoint over Interactive Cooking, or a corpus in its form, and score it.

    python eval/run_interactive_cooking.py --checkpoint CKPT --data ROWS --plan_set main --split test \
        --videos DIR --out RESULTS --window_s 8.57

Predictions are written as they come, OUT/<protocol>.json in the official format: a run that was stopped goes on.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from livemamba.cli import run_safely
from livemamba.config import config_from_dict, config_to_dict, with_override
from livemamba.data.cache import FeatureCache
from livemamba.data.official_rows import PLAN_SETS, SPLITS, load_rows
from livemamba.evaluation.interactive_cooking import Prediction
from livemamba.evaluation.predictions import read_predictions, write_predictions
from livemamba.evaluation.protocols import evaluate_streaming, evaluate_turn_based
from livemamba.evaluation.report import Result, evaluate, labels_of, table, write_result
from livemamba.evaluation.rules import PROTOCOLS, Protocol, add_rule_arguments, rules_of
from livemamba.evaluation.sanity import run_row, sanity_rows, step_durations
from livemamba.evaluation.text_scores import BertChoice
from livemamba.model.livemamba import LiveMamba
from livemamba.timeline import Timeline
from livemamba.training.features import cache_key
from livemamba.training.model_runs import Frames, benchmark_watcher


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Run a LiveMamba checkpoint over Interactive Cooking and score it.")
    parser.add_argument("--checkpoint", required=True, metavar="CKPT")
    parser.add_argument("--data", required=True, metavar="DIR", help="the folder with the benchmark's official rows")
    parser.add_argument("--plan_set", default="main", choices=PLAN_SETS)
    parser.add_argument("--split", required=True, choices=SPLITS)
    frames = parser.add_mutually_exclusive_group(required=True)
    frames.add_argument("--videos", metavar="DIR", help="folder of <video id>.mp4")
    frames.add_argument("--features", metavar="CACHE", help="features cached with this checkpoint's encoder")
    parser.add_argument("--out", required=True, metavar="DIR", help="predictions and result.json")
    parser.add_argument("--protocol", default="both", choices=("both", *PROTOCOLS))
    parser.add_argument("--system", default="LiveMamba", help="its name in the table")
    parser.add_argument(
        "--instruction_blind",
        action="store_true",
        help="the network is told of another step than the coach asks for, drawn by seed",
    )
    parser.add_argument("--sanity_rows", action="store_true", help="silent, chatty, timer and oracle beside it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="such as thresholds.mistake=0.3",
    )
    add_rule_arguments(parser)
    return parser.parse_args()


def main(arguments: argparse.Namespace) -> int:
    """Run, score, write, print."""
    rules = rules_of(arguments)
    truth = load_rows(arguments.data, arguments.plan_set, arguments.split)
    live = _with_overrides(LiveMamba.from_pretrained(arguments.checkpoint), arguments.overrides)
    features = FeatureCache(arguments.features, cache_key(live)) if arguments.features else None
    frames = Frames(live, videos=arguments.videos, features=features)
    protocols: tuple[Protocol, ...] = PROTOCOLS if arguments.protocol == "both" else (arguments.protocol,)
    results: list[Result] = []
    for protocol in protocols:
        said = _run(arguments, frames, truth, protocol)
        silent = BertChoice(wanted=False)
        results.append(evaluate(arguments.system, truth, said, protocol=protocol, rules=rules, bert=silent))
        if arguments.sanity_rows:
            durations = step_durations(load_rows(arguments.data, arguments.plan_set, "train"))
            for row in sanity_rows(durations, seed=arguments.seed):
                said = run_row(row, truth, protocol)
                results.append(evaluate(row.name, truth, said, protocol=protocol, rules=rules, bert=silent))
    content = {
        "benchmark": "interactive_cooking",
        "checkpoint": arguments.checkpoint,
        "decoding": config_to_dict(live.config.decoding),
        "instruction_blind": arguments.instruction_blind,
        "plan_set": arguments.plan_set,
        "split": arguments.split,
        "data": arguments.data,
        "labels": labels_of(arguments.data),
        "seed": arguments.seed,
        "rules": rules.to_dict(),
        "rows": [result.to_dict(per_video=False) for result in results],
    }
    write_result(Path(arguments.out) / "result.json", content)
    print(f"{arguments.plan_set}/{arguments.split}, {len(truth)} videos")
    print(table(results))
    print(f"written to {arguments.out}")
    return 0


def _with_overrides(live: LiveMamba, overrides: list[str]) -> LiveMamba:
    data = config_to_dict(live.config.decoding)
    for override in overrides:
        data = with_override(data, override)
    decoding = config_from_dict(type(live.config.decoding), data, where="--set")
    live.config = replace(live.config, decoding=decoding)
    return live


def _run(
    arguments: argparse.Namespace, frames: Frames, truth: list[Timeline], protocol: Protocol
) -> dict[str, Prediction]:
    """Every video; those whose predictions are there already are read."""
    path = Path(arguments.out) / f"{protocol}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    said = dict(read_predictions(path, protocol=protocol).videos) if path.is_file() else {}
    make = benchmark_watcher(frames, deaf=arguments.instruction_blind, seed=arguments.seed)
    for row in tqdm(truth, desc=protocol, unit="video", disable=None, dynamic_ncols=True):
        if row.video_id in said:
            continue
        shown = frames.of(row.video_id)
        if protocol == "streaming":
            said[row.video_id] = evaluate_streaming(row, make, shown)
        else:
            said[row.video_id] = evaluate_turn_based(row, make, shown)
        write_predictions(path, said.values())
    return {row.video_id: said[row.video_id] for row in truth}


if __name__ == "__main__":
    chosen = parse_arguments()
    sys.exit(run_safely(lambda: main(chosen)))
