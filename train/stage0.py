"""Stage 0: the vision encoder and the Q-Former learn the simulated world's state from single frames.

accelerate launch train/stage0.py --config configs/train/simkitchen_stage0.yaml [--resume] [key=value ...]
"""

import argparse
import sys
from pathlib import Path

from livemamba.cli import run_safely
from livemamba.config import load_config
from livemamba.training.coaching_script import load_for_training
from livemamba.training.loop import check_folder, train
from livemamba.training.stage0 import Stage0Config, Stage0Task


def main(arguments: argparse.Namespace) -> int:
    """Check what is cheap to check, load, train."""
    config = load_config(Stage0Config, arguments.config, arguments.overrides)
    check_folder(config.run, resume=arguments.resume)
    live = load_for_training(config.init)
    task = Stage0Task(live, config, Path(arguments.frames or f"{config.run.out}.frames"))
    model = train(task, run=config.run, optim=config.optim, config=config, resume=arguments.resume)
    print(f"the model is in {model}")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train vision encoder and Q-Former on states of the simulated world.")
    parser.add_argument("--config", required=True, metavar="FILE", help="such as configs/train/simkitchen_stage0.yaml")
    parser.add_argument("--resume", action="store_true", help="go on from the run's newest checkpoint")
    parser.add_argument("--frames", metavar="DIR", help="where decoded frames are kept (default: RUN.frames)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as optim.learning_rate=0.0005")
    chosen = parser.parse_args()
    sys.exit(run_safely(lambda: main(chosen)))
