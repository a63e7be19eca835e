"""The Q-Former: learned queries that read a frame's kept tokens and become its embeddings.

Shapes: B frames, K kept tokens, Q queries.
"""

import torch
from torch import Tensor, nn
from transformers import Blip2QFormerConfig, Blip2QFormerModel

from livemamba.config import QFormerConfig

_INIT_STD = 0.02


class QFormer(nn.Module):
    """BLIP-2's Q-Former with cross-attention in every layer, then a projection (paper 4.1; spec/model.md).

    Queries start as normal noise: transformers' own start for BLIP-2 queries is zeros, and queries that
    start equal stay equal. Their size hardly matters, since a layer norm comes first; 0.02 is what the
    layers start with. The projection starts with 0.02 and no bias too: the layers end in a layer norm, so
    a channel comes out at 0.02 * sqrt(hidden_size), 0.55 at full size: neither nothing nor a shock to a
    backbone that norms what each of its blocks reads.

    Args:
        config: queries, layers, widths and dropouts.
        encoder_width: width of the tokens that come in.
        output_width: the backbone's width.

    Attributes:
        queries: (Q, hidden_size), learned.
        layers: transformers' Blip2QFormerModel.
        projection: to the backbone's width.
    """

    def __init__(self, config: QFormerConfig, *, encoder_width: int, output_width: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.empty(config.num_queries, config.hidden_size).normal_(std=_INIT_STD))
        self.layers = Blip2QFormerModel(
            Blip2QFormerConfig(
                hidden_size=config.hidden_size,
                num_hidden_layers=config.num_hidden_layers,
                num_attention_heads=config.num_attention_heads,
                intermediate_size=config.intermediate_size,
                hidden_dropout_prob=config.hidden_dropout_prob,
                attention_probs_dropout_prob=config.attention_probs_dropout_prob,
                initializer_range=_INIT_STD,
                cross_attention_frequency=1,
                encoder_hidden_size=encoder_width,
                use_qformer_text_input=False,
            )
        )
        self.projection = nn.Linear(config.hidden_size, output_width)
        nn.init.normal_(self.projection.weight, std=_INIT_STD)
        nn.init.zeros_(self.projection.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """A frame's embeddings from its kept tokens.

        Args:
            tokens: (B, K, encoder_width).

        Returns:
            (B, Q, output_width).
        """
        queries = self.queries.expand(tokens.shape[0], -1, -1)
        read: Tensor = self.layers(query_embeds=queries, encoder_hidden_states=tokens).last_hidden_state
        projected: Tensor = self.projection(read)
        return projected
