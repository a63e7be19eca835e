"""What `train/pretrain.py` and `train/finetune.py` share: both are a `CoachingConfig` run to its end."""

import argparse
import warnings

from livemamba.config import load_config
from livemamba.model.livemamba import LiveMamba, RandomWeightsWarning
from livemamba.training.coaching import CoachingConfig, CoachingTask, check_corpora, features_of
from livemamba.training.loop import check_folder, train
from livemamba.training.validate import Validator


def parse_arguments(about: str) -> argparse.Namespace:
    """The options of both scripts."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--config", required=True, metavar="FILE", help="of configs/train/")
    parser.add_argument("--resume", action="store_true", help="go on from the run's newest checkpoint")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as optim.learning_rate=0.0005")
    return parser.parse_args()


def load_for_training(checkpoint: str) -> LiveMamba:
    """A checkpoint whose parts may be untrained still: they are about to be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomWeightsWarning)
        return LiveMamba.from_pretrained(checkpoint)


def main(arguments: argparse.Namespace) -> int:
    """Check what is cheap to check, load, train."""
    config = load_config(CoachingConfig, arguments.config, arguments.overrides)
    check_folder(config.run, resume=arguments.resume)
    check_corpora(config)
    live = load_for_training(config.init)
    validator = None
    if config.validation:
        validator = Validator(
            [(str(corpus.simkitchen), features_of(corpus, live)) for corpus in config.validation],
            split=config.validation[0].split,
            window_s=config.window_s,
            most_pairs=config.validation_pairs,
            most_turns=config.validation_turns,
        )
    task = CoachingTask(live, config, validator)
    model = train(task, run=config.run, optim=config.optim, config=config, resume=arguments.resume)
    print(f"the model is in {model}")  # noqa: T201
    return 0
