"""Video in, frames on the tick grid out; messages drawn back onto video."""
