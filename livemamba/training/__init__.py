"""The parts of the training loop worth testing; `train/` has the scripts."""
