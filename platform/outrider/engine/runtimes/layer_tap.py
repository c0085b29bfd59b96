"""What chosen decoder layers of a Hugging Face module gave in its last forward."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from outrider.core import UserError


class LayerTap:
    """Forward hooks on the decoder layers `layers` of `module`, until `close`.

    UserError where there is no such layer, or the module's layers can't be told.
    """

    def __init__(self, module: Any, layers: Sequence[int]) -> None:
        check_layers(layers, module.config.num_hidden_layers)
        found = decoder_layers(module)
        self.size = len(layers) * int(module.config.hidden_size)
        self._layers = tuple(layers)
        self._outputs: dict[int, torch.Tensor] = {}
        self._handles = [
            found[layer].register_forward_hook(partial(self._keep, layer)) for layer in layers
        ]

    def _keep(self, layer: int, _module: nn.Module, _inputs: Any, output: Any) -> None:
        # Some families give their attention weights along, as a tuple
        self._outputs[layer] = output[0] if isinstance(output, tuple) else output

    def features(self) -> torch.Tensor:
        """[T, size] in the module's dtype, layer beside layer; new memory each time.

        Flat whatever the axes of the batch are: OpenVINO's paged form swaps them.
        """
        if not self._outputs:  # before the first forward
            return torch.empty(0, self.size)
        width = self.size // len(self._layers)
        outputs = [self._outputs[layer].reshape(-1, width) for layer in self._layers]
        return torch.cat(outputs, dim=-1)

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


def check_layers(layers: Sequence[int], num_layers: int) -> None:
    """Raise UserError unless each is one of the model's decoder layers, and none is there twice."""
    wrong = [layer for layer in layers if not 0 <= layer < num_layers]
    if wrong:
        raise UserError(f"feature layer {wrong[0]} is not between 0 and {num_layers - 1}")
    if len(set(layers)) < len(layers):
        raise UserError(f"feature layers {tuple(layers)} repeat one")


def decoder_layers(module: Any) -> nn.ModuleList:
    """The one outermost list of as many modules as the config counts layers.

    UserError naming the model type where there is none or another.
    """
    config, found = module.config, dict[str, nn.ModuleList]()
    for name, part in module.named_modules():  # outer ones first
        is_inner = any(name.startswith(f"{outer}.") for outer in found)
        is_list = isinstance(part, nn.ModuleList) and len(part) == config.num_hidden_layers
        if is_list and not is_inner:
            found[name] = part
    if len(found) != 1:
        raise UserError(
            f"model type {config.model_type} gives no features: which of its parts are its "
            f"{config.num_hidden_layers} layers can't be told ({', '.join(found) or 'none'})"
        )
    return next(iter(found.values()))


def features_named(layers: Sequence[int]) -> dict[str, str]:
    """What a model's identity says of features: nothing where it gives none."""
    return {"feature_layers": ",".join(map(str, layers))} if layers else {}
