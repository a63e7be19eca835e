"""Choose a checkpoint's thresholds on validation, by the pair test and the benchmark's own metrics.

python eval/calibrate_thresholds.py --checkpoint CKPT --corpus DIR --features CACHE --window_s 8.57 --out CKPT2
"""

import argparse
import sys

from livemamba.cli import run_safely
from livemamba.data.cache import FeatureCache
from livemamba.data.sources import Features
from livemamba.files import check_replaceable
from livemamba.model.livemamba import CHECKPOINT_FILES, CONFIG_FILE, LiveMamba
from livemamba.training.features import StateFeatures, cache_key
from livemamba.training.validate import OBJECTIVES, Validator, calibrated


def main(arguments: argparse.Namespace) -> int:
    """Score every setting, keep the best, write the checkpoint."""
    check_replaceable(arguments.out, replaces=CONFIG_FILE if arguments.overwrite else None, only=CHECKPOINT_FILES)
    live = LiveMamba.from_pretrained(arguments.checkpoint)
    features: Features
    if arguments.states:
        features = StateFeatures(arguments.corpus, keep=live.config.pruning.keep, width=live.vision.width)
    else:
        features = FeatureCache(arguments.features, cache_key(live))
    validator = Validator(
        [(arguments.corpus, features)],
        split=arguments.split,
        window_s=arguments.window_s,
        most_pairs=arguments.pairs,
        most_turns=arguments.turns,
    )
    live, best = calibrated(live, validator, arguments.objective)
    live.save_pretrained(arguments.out, overwrite=arguments.overwrite)
    traced = best.to_dict()
    real = validator.through_streams(live) if arguments.verify else {}
    print(f"{'':17}{'traces':>8}{'streams' if real else '':>9}")
    for name in dict.fromkeys([*traced, *real]):
        print(f"{name:17}{_shown(traced.get(name)):>8}{_shown(real.get(name)):>9}")
    print(f"written to {arguments.out}")
    return 0


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Choose a checkpoint's thresholds on validation.")
    parser.add_argument("--checkpoint", required=True, metavar="CKPT")
    parser.add_argument("--corpus", required=True, metavar="DIR", help="a simulated corpus")
    parser.add_argument("--split", default="validation", choices=("train", "validation"))
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--features", metavar="CACHE", help="features cached with this checkpoint's encoder")
    given.add_argument("--states", action="store_true", help="the world's state, for a network trained on it")
    parser.add_argument("--window_s", type=float, default=30.0, help="whole width of the scoring window (default 30)")
    parser.add_argument("--pairs", type=int, default=400, metavar="N", help="of the pair test (default 400)")
    parser.add_argument("--turns", type=int, default=400, metavar="N", help="steps as they were given (default 400)")
    parser.add_argument(
        "--objective",
        default="all",
        choices=OBJECTIVES,
        help="what is made best: pair test + IC-Acc + F1 (all, default), or the last two",
    )
    parser.add_argument(
        "--verify", action="store_true", help="run the chosen thresholds on the same clips through real streams; slow"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="the checkpoint with the thresholds")
    parser.add_argument("--overwrite", action="store_true", help="replace a checkpoint that is there")
    chosen = parser.parse_args()
    sys.exit(run_safely(lambda: main(chosen)))
