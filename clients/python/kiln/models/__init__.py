"""Complete models, with the parameter names of their published weights.

>>> from kiln.models import GPT, GPTConfig, resnet18
>>> resnet18(num_classes=10, small_images=True)(kiln.zeros(2, 3, 32, 32)).shape
(2, 10)
>>> model = GPT(GPTConfig(vocabulary=65, context=64, layers=4, heads=4, width=128))
>>> model(kiln.zeros((2, 16), dtype=kiln.int64)).shape
(2, 16, 65)
"""

from kiln.models.gpt import GPT, Cache, GPTConfig
from kiln.models.resnet import ResNet, resnet18, resnet34, resnet50, resnet101

__all__ = ["GPT", "Cache", "GPTConfig", "ResNet", "resnet18", "resnet34", "resnet50", "resnet101"]
