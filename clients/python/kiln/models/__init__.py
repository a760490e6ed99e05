"""Whole models, with the parameter names that their published weights have."""

from kiln.models.gpt import GPT, Cache, GPTConfig
from kiln.models.resnet import ResNet, resnet18, resnet34, resnet50, resnet101

__all__ = ["GPT", "Cache", "GPTConfig", "ResNet", "resnet18", "resnet34", "resnet50", "resnet101"]
