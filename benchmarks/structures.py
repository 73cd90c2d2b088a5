"""Structures that people train, small, from configurations, with random weights.

Each gives a `ckptcli.torch.Step`. Those of a library are there where it is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ckptcli.torch import Step

Maker = Callable[[], Step]

IMAGES = (2, 3, 64, 64)
CLASSES = 10
VOCABULARY, TOKENS = 1000, (4, 64)


def structures() -> dict[str, Maker]:
    """Name -> what makes it; those of libraries that are not installed are left out."""
    found: dict[str, Maker] = {
        "U-Net": unet,
        "LSTM": lstm,
        "mixture of experts": experts,
        "transformer encoder": encoder,
    }
    for library, makers in _OF_LIBRARIES.items():
        if importlib.util.find_spec(library) is not None:
            found |= {f"{library} {name}": make for name, make in makers.items()}
    return found


def unet() -> Step:
    return Step(_UNet(16), torch.rand(2, 3, 32, 32), loss=lambda output, x: output.square().mean())


def lstm() -> Step:
    return _classifier(_Recurrent(), torch.rand(8, 32, 32))


def experts() -> Step:
    blocks = [_Experts(32) for _ in range(4)]
    return Step(
        nn.Sequential(*blocks), torch.rand(64, 32), loss=lambda y, x: (y - x).square().mean()
    )


def encoder() -> Step:
    layers = [
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.1) for _ in range(4)
    ]
    return Step(nn.Sequential(*layers), torch.rand(4, 32, 64), loss=lambda y, x: y.square().mean())


class _UNet(nn.Module):
    """Two levels down and up again, with skips."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = _convolutions(3, width)
        self.down = nn.ModuleList(
            [_convolutions(width, 2 * width), _convolutions(2 * width, 4 * width)]
        )
        self.up = nn.ModuleList(
            [_convolutions(6 * width, 2 * width), _convolutions(3 * width, width)]
        )
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.enter(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], dim=1))
        return self.head(x)


def _convolutions(given: int, made: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(given, made, 3, padding=1),
        nn.GroupNorm(4, made),
        nn.SiLU(),
        nn.Conv2d(made, made, 3, padding=1),
        nn.SiLU(),
    )


class _Recurrent(nn.Module):
    """Two layers, the last state into a head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.LSTM(32, 64, num_layers=2, batch_first=True)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x)[0][:, -1])


class _Experts(nn.Module):
    """Each token goes through the one of four experts that its router prefers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.router(x).softmax(-1)
        best = weights.argmax(-1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            places = (best == i).nonzero()[:, 0]
            result = result.index_add(0, places, expert(x[places]) * weights[places, i : i + 1])
        return x + result


def _classifier(module: nn.Module, x: torch.Tensor) -> Step:
    labels = torch.arange(x.shape[0]) % CLASSES
    return Step(
        module, x, loss=lambda output, batch: F.cross_entropy(output, batch[1]), batch=(x, labels)
    )


def _torchvision(name: str, **settings: Any) -> Maker:
    def make() -> Step:
        import torchvision.models as models

        module = getattr(models, name)(weights=None, num_classes=CLASSES, **settings)
        return _classifier(module, torch.rand(*IMAGES))

    return make


def _vit() -> Step:
    from torchvision.models import VisionTransformer

    module = VisionTransformer(64, 8, 4, 4, 64, 128, num_classes=CLASSES)
    return _classifier(module, torch.rand(*IMAGES))


def _timm(name: str, **settings: Any) -> Maker:
    def make() -> Step:
        import timm

        module = timm.create_model(name, pretrained=False, num_classes=CLASSES, **settings)
        return _classifier(module, torch.rand(*IMAGES))

    return make


def _language(model: str, config: str, **settings: Any) -> Maker:
    def make() -> Step:
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**settings)).train()
        ids = torch.randint(0, VOCABULARY, TOKENS)
        return Step(module, kwargs={"input_ids": ids, "labels": ids})

    return make


_LLAMA = {
    "hidden_size": 128,
    "intermediate_size": 344,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 256,
}
_llama = _language("LlamaForCausalLM", "LlamaConfig", use_cache=False, **_LLAMA)


def _lora() -> Step:
    from peft import LoraConfig, get_peft_model

    step = _llama()
    adapted = get_peft_model(step.module, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    return Step(adapted, kwargs=step.kwargs)


_OF_LIBRARIES: dict[str, dict[str, Maker]] = {
    "torchvision": {
        "resnet18": _torchvision("resnet18"),
        "mobilenet_v3_small": _torchvision("mobilenet_v3_small"),
        "densenet121": _torchvision("densenet121", memory_efficient=True),
        "ViT": _vit,
    },
    "timm": {
        "vit_tiny": _timm("vit_tiny_patch16_224", img_size=64, depth=4),
        "convnext_atto": _timm("convnext_atto"),
        "efficientnet_b0": _timm("efficientnet_b0"),
    },
    "transformers": {
        "Llama": _llama,
        "Llama with a cache": _language("LlamaForCausalLM", "LlamaConfig", **_LLAMA),
        "GPT-2": _language(
            "GPT2LMHeadModel",
            "GPT2Config",
            n_embd=128,
            n_layer=4,
            n_head=4,
            vocab_size=VOCABULARY,
            use_cache=False,
        ),
        "BERT": _language(
            "BertForMaskedLM",
            "BertConfig",
            hidden_size=128,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=256,
            vocab_size=VOCABULARY,
        ),
        "Mixtral": _language(
            "MixtralForCausalLM",
            "MixtralConfig",
            num_local_experts=4,
            use_cache=False,
            **_LLAMA,
        ),
    },
    "peft": {"LoRA on Llama": _lora},
}
