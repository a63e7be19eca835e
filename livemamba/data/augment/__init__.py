"""Augmentations of step clips: each a function of a clip and a generator of random numbers. No torch."""
