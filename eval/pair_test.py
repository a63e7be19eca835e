"""The pair test: does a checkpoint listen to what was asked?

python eval/pair_test.py --checkpoint CKPT --corpus DIR --split test --videos DIR/videos --window_s 8.57 --out FILE
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from livemamba.cli import run_safely
from livemamba.config import config_to_dict
from livemamba.data.cache import FeatureCache
from livemamba.data.official_rows import ALL_SPLITS
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import Features
from livemamba.evaluation.pair_test import PairRules, hear_pairs, judge_pairs, pair_scores, pair_table, pairs_of
from livemamba.evaluation.report import write_result
from livemamba.model.livemamba import LiveMamba
from livemamba.training.features import StateFeatures, cache_key
from livemamba.training.model_runs import Frames, clip_watcher


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Show each clip under its right and under an opposite instruction.")
    parser.add_argument("--checkpoint", required=True, metavar="CKPT")
    parser.add_argument("--corpus", required=True, metavar="DIR", help="a simulated corpus")
    parser.add_argument("--split", default="test", choices=ALL_SPLITS)
    frames = parser.add_mutually_exclusive_group(required=True)
    frames.add_argument("--videos", metavar="DIR", help="folder of <video id>.mp4")
    frames.add_argument("--features", metavar="CACHE", help="features cached with this checkpoint's encoder")
    frames.add_argument("--states", action="store_true", help="the world's state, for a network trained on it")
    parser.add_argument("--window_s", type=float, default=30.0, help="whole width of the scoring window (default 30)")
    parser.add_argument(
        "--early_feedback",
        default="forbidden",
        choices=("forbidden", "allowed"),
        help="under the opposite instruction: may feedback come before it can be seen (default forbidden)",
    )
    parser.add_argument(
        "--later_success",
        default="forbidden",
        choices=("forbidden", "allowed"),
        help="under the opposite instruction: may a success follow the feedback (default forbidden)",
    )
    parser.add_argument("--pairs", type=int, metavar="N", help="so many, drawn by seed (default: one of every clip)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--instruction_blind", action="store_true", help="told of another step than is asked for")
    parser.add_argument("--out", required=True, metavar="FILE", help="the scores, as JSON")
    return parser.parse_args()


def main(arguments: argparse.Namespace) -> int:
    """Run, score, write, print."""
    rules = PairRules(
        window_s=arguments.window_s,
        early_feedback=arguments.early_feedback,
        later_success=arguments.later_success,
    )
    pairs = pairs_of(read_step_clips(arguments.corpus, arguments.split), most=arguments.pairs, seed=arguments.seed)
    live = LiveMamba.from_pretrained(arguments.checkpoint)
    frames = Frames(live, videos=arguments.videos, features=_features(arguments, live))
    watch = clip_watcher(frames, deaf=arguments.instruction_blind, seed=arguments.seed)
    heard = hear_pairs(tqdm(pairs, unit="pair", disable=None, dynamic_ncols=True), watch, rules)
    scores = pair_scores(judge_pairs(heard, rules), seed=arguments.seed)
    any_time = pair_scores(judge_pairs(heard, replace(rules, timed=False)), seed=arguments.seed)
    about = {
        "test": "pairs",
        "checkpoint": arguments.checkpoint,
        "decoding": config_to_dict(live.config.decoding),
        "corpus": arguments.corpus,
        "split": arguments.split,
        "rules": rules.to_dict(),
        "instruction_blind": arguments.instruction_blind,
        "seed": arguments.seed,
    }
    write_result(Path(arguments.out), {**about, "scores": scores, "scores_any_time": any_time})
    print(f"{arguments.split}, {len(pairs)} pairs, +-{rules.window_s / 2:.1f} s")
    print(pair_table(scores, any_time))
    print(f"written to {arguments.out}")
    return 0


def _features(arguments: argparse.Namespace, live: LiveMamba) -> Features | None:
    if arguments.states:
        return StateFeatures(arguments.corpus, keep=live.config.pruning.keep, width=live.vision.width)
    return FeatureCache(arguments.features, cache_key(live)) if arguments.features else None


if __name__ == "__main__":
    chosen = parse_arguments()
    sys.exit(run_safely(lambda: main(chosen)))
