"""Training on SPIR-V gives the CPU's losses. The daemon opens the stand-in for Level Zero's
library, which runs kernels on an OpenCL runtime for processors, so no GPU is needed."""

import os
from collections.abc import Iterator

import numpy as np
import pytest

from first_steps import assert_devices_apart_train_together, assert_short_floats_work, losses
from kiln import nn
from kilnd_process import ROOT, Kilnd, build_folder


@pytest.fixture(scope="module")
def both_kinds() -> Iterator[Kilnd]:
    """A daemon with the CPU and two GPUs without shared memory, which are Intel's OpenCL."""
    vendors = ROOT / "build" / "intel_opencl" / "vendors"
    if not vendors.is_dir() and "OCL_ICD_VENDORS" not in os.environ:
        pytest.skip("no OpenCL that takes SPIR-V; tests/intel_opencl fetches one")
    stand_in = build_folder() / "tests" / "stand_ins" / "level_zero"
    if not (stand_in / "libze_loader.so.1").exists():
        pytest.skip("the stand-in for Level Zero is not built: ninja kiln_level_zero_stand_in")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(stand_in))
        patch.setenv("KILN_STAND_IN_DEVICES", "2")
        if vendors.is_dir():
            patch.setenv("OCL_ICD_VENDORS", str(vendors))
        with Kilnd(devices="cpu,level_zero") as daemon:
            yield daemon


def classifier() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 32),
                         nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 10))


def test_training_follows_the_cpu(both_kinds):
    expected = losses(both_kinds.address, "cpu:0", classifier, (16, 1, 8, 8), 1e-2)
    assert expected[-1] < 0.8 * expected[0]
    got = losses(both_kinds.address, "level_zero:0", classifier, (16, 1, 8, 8), 1e-2)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_short_floats_are_computed_in_float32(both_kinds):
    assert_short_floats_work(both_kinds.address, "level_zero:0")


def test_devices_that_do_not_reach_each_other_train_together(both_kinds):
    assert_devices_apart_train_together(both_kinds.address, "level_zero")
