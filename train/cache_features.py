"""Features of videos by a checkpoint's vision encoder, made once for the trainings that keep it frozen.

python train/cache_features.py --checkpoint CKPT --videos DIR --out CACHE [--list FILE] [--part I --parts N]
"""

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

from livemamba.cli import FAILED, STOPPED, run_safely
from livemamba.data.cache import FeatureCache
from livemamba.errors import InputError, MissingError, UserError
from livemamba.texts import listed
from livemamba.training.coaching_script import load_for_training
from livemamba.training.features import cache_key, cache_videos


def main(arguments: argparse.Namespace) -> int:
    """Make what is missing; what is there already stays. A video that can't be read is named, the rest goes on."""
    if not 0 <= arguments.part < arguments.parts:
        raise InputError(f"--part {arguments.part} of --parts {arguments.parts}; parts count from 0")
    videos = find_videos(Path(arguments.videos), arguments.list)[arguments.part :: arguments.parts]
    live = load_for_training(arguments.checkpoint)
    cache = FeatureCache(arguments.out, cache_key(live))
    failed: dict[str, UserError] = {}
    done = 0
    try:
        for video_id, failure in tqdm(cache_videos(live, videos, cache), total=len(videos), unit="video", disable=None):
            if failure is not None:
                failed[video_id] = failure
                tqdm.write(f"{video_id}: {failure}", file=sys.stderr)
            done += 1
    except KeyboardInterrupt:
        print(f"stopped: {done} of {len(videos)} videos are done; the same command goes on", file=sys.stderr)
        return STOPPED
    print(f"features of {done - len(failed)} of {len(videos)} videos are in {arguments.out}")
    if failed:
        print(f"not made: {len(failed)} ({listed(failed)})", file=sys.stderr)
    return FAILED if failed else 0


def find_videos(folder: Path, names: str | None) -> list[Path]:
    """The videos to read: those of a list, or all.

    Raises:
        MissingError: naming those of the list that aren't there.
        InputError: if there is none.
    """
    if names is None:
        videos = sorted(folder.glob("*.mp4"))
    else:
        if not Path(names).is_file():
            raise MissingError(f"--list {names} does not exist; it holds a video id a line")
        ids = dict.fromkeys(Path(names).read_text(encoding="utf-8").split())
        videos = [folder / f"{video_id}.mp4" for video_id in ids]
        if absent := [video.stem for video in videos if not video.is_file()]:
            raise MissingError(f"{folder} lacks {len(absent)} of {len(videos)} videos of {names}: {listed(absent)}")
    if not videos:
        raise InputError(f"{names or folder}: no video; name a folder that holds *.mp4")
    return videos


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Cache the features of videos.")
    parser.add_argument("--checkpoint", required=True, metavar="DIR", help="whose vision encoder")
    parser.add_argument("--videos", required=True, metavar="DIR", help="folder of *.mp4")
    parser.add_argument("--out", required=True, metavar="DIR", help="the cache; videos that are in it are kept")
    parser.add_argument("--list", metavar="FILE", help="only these: a video id a line (default: all)")
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="split the work among N processes")
    parser.add_argument("--part", type=int, default=0, metavar="I", help="and do the I-th part, from 0")
    chosen = parser.parse_args()
    sys.exit(run_safely(lambda: main(chosen)))
