"""Pre-training (stage 1): the Q-Former learns to speak to the backbone (paper 4.2, D.1).

accelerate launch train/pretrain.py --config configs/train/simkitchen_stage1.yaml [--resume] [key=value ...]
"""

import sys

from livemamba.cli import run_safely
from livemamba.training.coaching_script import main, parse_arguments

if __name__ == "__main__":
    chosen = parse_arguments("Pre-train: the Q-Former learns to speak to the backbone.")
    sys.exit(run_safely(lambda: main(chosen)))
