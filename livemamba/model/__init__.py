"""The network: vision encoder, token pruning, Q-Former, Mamba backbone, and the stream that carries its state."""
