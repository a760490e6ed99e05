"""Finds the devices, by a daemon that is started for each driver, and whether the Python client can run."""

import json
import re
import subprocess
import sys
from typing import NamedTuple

from kilnd_process import Kilnd, program


class Driver(NamedTuple):
    """A driver's devices, or the reason why there are none."""

    name: str
    devices: list[str]  # "cuda:0 (NVIDIA H100)"
    why_none: str = ""
    broken: bool = False  # the daemon reports something other than missing devices


def look_for(driver: str) -> Driver:
    """Starts a daemon for only the driver's devices; it does not start if there are none."""
    try:
        with Kilnd(devices=driver) as daemon:
            told = subprocess.run([program("clients/cli/kiln"), "devices", "--json"], env=daemon.environment(), timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        text = str(error)
        why = re.search(rf'event=driver driver={driver} devices=0 why_not_more="((?:[^"\\]|\\.)*)"', text)
        return Driver(driver, [], why[1]) if why else Driver(driver, [], f"kilnd does not start: {text[-300:]}", broken=True)
    if told.returncode != 0:
        return Driver(driver, [], f"kiln devices fails: {told.stdout[-300:]}", broken=True)
    return Driver(driver, [f"{device['name']} ({device['model']})" for device in json.loads(told.stdout)["devices"]])


def client_is_missing(environment: dict[str, str]) -> str:
    """Returns why the Python client cannot run with this Python, and the remedy; "" if it runs."""
    code = """
import importlib.util
missing = [package for module, package in (("numpy", "numpy"), ("grpc", "grpcio")) if importlib.util.find_spec(module) is None]
print(" and ".join(missing), flush=True)
if not missing: import kiln
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    missing, _, error = done.stdout.partition("\n")
    if missing:
        packages = missing.replace(" and", "")
        return f"{sys.executable} has no {missing}; to install: {sys.executable} -m pip install {packages}"
    return "" if done.returncode == 0 else f"import kiln fails: {error.strip().splitlines()[-1]}"
