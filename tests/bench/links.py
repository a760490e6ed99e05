"""The Python client from another machine: uploads, and training over a slow link."""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from kilnd_process import ROOT, Kilnd, build_folder, free_port
from link import Link
from report import Row

DELAY = 0.05  # seconds each way
BATCH = 256


def link_rows(quick: bool) -> Iterator[Row]:
    """Yields the rows of both measurements, made by this checkout's client in a separate process, which prints them."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(
        str(ROOT / path) for path in ("clients/python", "tests", "tests/bench")))
    python = ROOT / "build/venv/bin/python"
    done = subprocess.run([str(python), __file__, "quick" if quick else "full"], env=environment,
                          capture_output=True, text=True, check=True)
    for text in done.stdout.splitlines():
        name, value, unit, peer, peer_value = text.split("\t")
        yield Row(name, float(value), unit, peer, float(peer_value))


def alternately(times: int, *measured: Callable[[], float]) -> list[float]:
    """Returns the median result of each function; the calls alternate."""
    rounds = [[measure() for measure in measured] for _ in range(times)]
    return [statistics.median(values) for values in zip(*rounds)]


@contextlib.contextmanager
def echo_server() -> Iterator[str]:
    """Yields the address of a bare gRPC server that discards uploads."""
    address = f"127.0.0.1:{free_port()}"
    server = subprocess.Popen([str(build_folder() / "tests/bench/bench_echo_server"), address],
                              stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        yield address
    finally:
        server.terminate()
        server.wait()


def upload_rows(kilnd: Kilnd, mebibytes: int, times: int) -> Iterator[Row]:
    """Uploads new content-addressed data each time, next to one stream of the same chunks that are neither named nor kept.

    First until the daemon has the bytes, as for the stream's peer; then until a tensor has been made of them.
    """
    import grpc
    import kiln
    import numpy as np
    from kiln._proto.kiln.v1 import blob_pb2
    from kiln._session import session
    from kiln._session.rpc import Stub

    session.is_local = lambda target: False
    connection = kiln.connect(kilnd.tcp_address)
    kilnd_blobs = Stub(connection._session.channel, "kiln.v1.BlobService")
    data = np.random.default_rng(0).integers(0, 256, mebibytes << 20, dtype=np.uint8)

    def gigabytes_per_second(start: float) -> float:
        return 1e-9 * data.nbytes / (time.perf_counter() - start)

    def sent() -> float:
        data[:: 1 << 20] += 1  # every piece differs from the previous one
        names: list[str] = []
        start = time.perf_counter()
        connection._session.blobs.upload(memoryview(data), names.extend)
        value = gigabytes_per_second(start)
        kilnd_blobs.DeleteBlobs(blob_pb2.DeleteBlobsRequest(session_id=connection._session.id, blobs=names))
        return value

    def made() -> float:
        data[:: 1 << 20] += 1
        start = time.perf_counter()
        tensor = kiln.tensor(data).realize()
        connection.synchronize()
        value = gigabytes_per_second(start)
        del tensor
        return value

    with echo_server() as address, grpc.insecure_channel(address) as channel:
        service = Stub(channel, "kiln.v1.BlobService")

        def bare() -> float:
            bytes_of = memoryview(data)
            start = time.perf_counter()
            service.Upload(blob_pb2.UploadRequest(data=bytes(bytes_of[at : at + (1 << 20)]))
                           for at in range(0, data.nbytes, 1 << 20))
            return gigabytes_per_second(start)

        for name, measure in (("content-addressed upload", sent), ("tensor of a content-addressed upload", made)):
            measure(), bare()
            value, peer = alternately(times, measure, bare)
            yield Row(f"{name} of {mebibytes} MiB, Python", value, "GB/s", "gRPC stream, Python", peer)
    connection.close()


def training_rows(kilnd: Kilnd, steps: int, times: int) -> Iterator[Row]:
    """Trains over a link of 50 ms each way, reading only the last step's loss.

    First with batches that are cut on the device from a data set that was uploaded once, next to the loopback. Then with 786
    KiB of new data in each step, next to a link without delay: all share this machine's cores, and carrying that much data
    takes the link about 0.15 of a core, with and without delay.
    """
    import kiln
    import numpy as np

    images = np.random.default_rng(0).normal(size=(4096, 1, 28, 28)).astype(np.float32)
    labels = np.random.default_rng(1).integers(0, 10, len(images))
    orders = np.random.default_rng(2)

    def cut_on_the_device() -> Callable[[], kiln.Tensor]:
        x, y = kiln.tensor(images).realize(), kiln.tensor(labels).realize()
        step = training_step()
        places_step = kiln.jit(lambda places: step(x[places], y[places]))
        return lambda: places_step(kiln.tensor(orders.integers(0, len(images), BATCH)))

    def new_data() -> Callable[[], kiln.Tensor]:
        step = kiln.jit(training_step())
        return lambda: step(kiln.tensor(images[:BATCH]), kiln.tensor(labels[:BATCH]))

    with Link(kilnd.tcp_address, DELAY) as slow, Link(kilnd.tcp_address) as near:
        for name, addresses, make_step, peer in (
                ("", (slow.address, kilnd.tcp_address), cut_on_the_device, "the loopback"),
                (" with new data", (slow.address, near.address), new_data, "a link without delay")):
            trainers = [trainer(address, make_step, steps) for address in addresses]
            for steps_per_second in trainers:
                steps_per_second()
            value, peer_value = alternately(times, *trainers)
            yield Row(f"training steps{name}, 50 ms away each way", value, "/s", peer, peer_value)


def training_step() -> "Callable[[kiln.Tensor, kiln.Tensor], kiln.Tensor]":
    """One step of a small convnet, given images and labels."""
    from kiln import nn, optim

    model = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 13 * 13, 10))
    optimizer = optim.Adam(model.parameters(), lr=1e-3)

    def step(x: "kiln.Tensor", y: "kiln.Tensor") -> "kiln.Tensor":
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def trainer(address: str, make_step: "Callable[[], Callable[[], kiln.Tensor]]", steps: int) -> Callable[[], float]:
    """Returns a function that trains over its own connection and returns the steps per second."""
    import kiln
    from kiln._session import connection as connections

    connection = kiln.connect(address)
    step = make_step()

    def steps_per_second() -> float:
        connections._default = connection
        start = time.perf_counter()
        for _ in range(steps):
            loss = step()
        loss.item()
        return steps / (time.perf_counter() - start)

    return steps_per_second


def main() -> None:
    quick = sys.argv[1] == "quick"
    with Kilnd(devices=None) as kilnd:
        for row in (*training_rows(kilnd, 20 if quick else 1500, 1 if quick else 9),
                    *upload_rows(kilnd, 32 if quick else 1024, 1 if quick else 5)):
            print(row.name, row.value, row.unit, row.peer, row.peer_value, sep="\t", flush=True)


if __name__ == "__main__":
    main()
