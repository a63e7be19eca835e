"""Fine-tuning (stage 2): Q-Former and backbone learn to coach, on cached features (paper 4.2, 4.3, D.2, D.3).

accelerate launch train/finetune.py --config configs/train/simkitchen_stage2.yaml [--resume] [key=value ...]
"""

import sys

from livemamba.cli import run_safely
from livemamba.training.coaching_script import main, parse_arguments

if __name__ == "__main__":
    chosen = parse_arguments("Fine-tune on step clips: Q-Former and backbone learn to coach.")
    sys.exit(run_safely(lambda: main(chosen)))
