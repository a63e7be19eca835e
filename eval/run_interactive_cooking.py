"""Run a LiveMamba checkpoint over Interactive Cooking, or a corpus in its form, and score it.

    python eval/run_interactive_cooking.py --checkpoint CKPT --data ROWS --plan_set main --split test \
        --videos DIR --out RESULTS --window_s 8.57

Predictions are written as they come, OUT/<protocol>.json in the official format: a run that was stopped goes on. What
made them is in OUT/run.json: another checkpoint, other thresholds or rows need another OUT.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from livemamba.cli import run_safely
from livemamba.config import config_from_dict, config_to_dict, with_override
from livemamba.data.cache import FeatureCache
from livemamba.data.official_rows import ALL_SPLITS, PLAN_SETS, load_rows, rows_file
from livemamba.evaluation.interactive_cooking import Prediction
from livemamba.evaluation.predictions import claim_run, read_predictions, write_predictions
from livemamba.evaluation.protocols import evaluate_streaming, evaluate_turn_based
from livemamba.evaluation.report import Result, differences_table, evaluate, labels_of, table, write_result
from livemamba.evaluation.rules import PROTOCOLS, Protocol, ScoringRules, add_rule_arguments, rules_of
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
    parser.add_argument("--split", required=True, choices=ALL_SPLITS)
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
    parser.add_argument(
        "--compare_with",
        action="append",
        default=[],
        metavar="DIR",
        help="OUT of an earlier run (the blind one, ...): a row of its own, and the difference; repeatable",
    )
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
    claim_run(arguments.out, _settings(arguments, live))
    results: list[Result] = []
    differences: list[dict[str, Any]] = []
    for protocol in protocols:
        own = _result(arguments.system, truth, _run(arguments, frames, truth, protocol), protocol, rules)
        others = [_result(*named, protocol, rules) for named in _others(arguments, truth, protocol)]
        results += [own, *others]
        differences += [own.less(other) for other in others]
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
        "differences": differences,
    }
    write_result(Path(arguments.out) / "result.json", content)
    print(f"{arguments.plan_set}/{arguments.split}, {len(truth)} videos")
    print(table(results))
    if differences:
        print(differences_table(arguments.system, differences))
    print(f"written to {arguments.out}")
    return 0


def _with_overrides(live: LiveMamba, overrides: list[str]) -> LiveMamba:
    data = config_to_dict(live.config.decoding)
    for override in overrides:
        data = with_override(data, override)
    decoding = config_from_dict(type(live.config.decoding), data, where="--set")
    return live.with_decoding(decoding)


def _settings(arguments: argparse.Namespace, live: LiveMamba) -> dict[str, Any]:
    """What the predictions depend on."""
    rows = rows_file(arguments.data, arguments.plan_set, arguments.split)
    return {
        "model": live.fingerprint(),
        "decoding": config_to_dict(live.config.decoding),
        "frames": "videos" if arguments.videos else "features",
        "plan_set": arguments.plan_set,
        "split": arguments.split,
        "rows": hashlib.sha256(rows.read_bytes()).hexdigest()[:16],
        "instruction_blind": f"seed {arguments.seed}" if arguments.instruction_blind else None,
    }


def _result(
    system: str, truth: list[Timeline], said: dict[str, Prediction], protocol: Protocol, rules: ScoringRules
) -> Result:
    return evaluate(system, truth, said, protocol=protocol, rules=rules, bert=BertChoice(wanted=False))


def _others(
    arguments: argparse.Namespace, truth: list[Timeline], protocol: Protocol
) -> Iterator[tuple[str, list[Timeline], dict[str, Prediction]]]:
    """The systems beside it: earlier runs, then the sanity rows."""
    for folder in map(Path, arguments.compare_with):
        yield folder.name, truth, read_predictions(folder / f"{protocol}.json", protocol=protocol).videos
    if arguments.sanity_rows:
        durations = step_durations(load_rows(arguments.data, arguments.plan_set, "train"))
        for row in sanity_rows(durations, seed=arguments.seed):
            yield row.name, truth, run_row(row, truth, protocol)


def _run(
    arguments: argparse.Namespace, frames: Frames, truth: list[Timeline], protocol: Protocol
) -> dict[str, Prediction]:
    """Every video; those whose predictions are there already are read."""
    path = Path(arguments.out) / f"{protocol}.json"
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
