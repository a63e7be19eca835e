"""Features of videos by a checkpoint's vision encoder, made once for the trainings that keep it frozen.

python train/cache_features.py --checkpoint CKPT --videos DIR --out CACHE [--split train --corpus DIR]
"""

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from livemamba.cli import run_safely
from livemamba.data.cache import FeatureCache
from livemamba.errors import InputError
from livemamba.training.coaching_script import load_for_training
from livemamba.training.features import cache_key, cache_videos


def main(arguments: argparse.Namespace) -> int:
    """Make what is missing; what is there already stays."""
    videos = sorted(Path(arguments.videos).glob("*.mp4"))[arguments.part :: arguments.parts]
    if not videos:
        raise InputError(f"{arguments.videos}: no *.mp4 in it; name a folder of videos")
    live = load_for_training(arguments.checkpoint)
    cache = FeatureCache(arguments.out, cache_key(live))
    for _ in tqdm(cache_videos(live, videos, cache), total=len(videos), unit="video", disable=None):
        pass
    print(f"features of {len(videos)} videos are in {arguments.out}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Cache the features of videos.")
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="whose vision encoder")
    parser.add_argument("--videos", required=True, metavar="DIR", help="folder of *.mp4")
    parser.add_argument("--out", required=True, metavar="DIR", help="the cache; videos that are in it are kept")
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="split the work among N processes")
    parser.add_argument("--part", type=int, default=0, metavar="I", help="and do the I-th part, from 0")
    chosen = parser.parse_args()
    sys.exit(run_safely(lambda: main(chosen)))
