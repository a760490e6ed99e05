"""The pages for supervisors, and the metrics of the process and of the certificate."""

import datetime
import os
import subprocess
import time
import urllib.error
import urllib.request

from certificates import certificate
from eventually import GIVE_UP_SECONDS
from kilnd_process import Kilnd, build_folder


def get(daemon: Kilnd, path: str) -> tuple[int, str]:
    """Returns status and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}{path}", timeout=GIVE_UP_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_and_readiness_are_told_apart_and_need_no_token():
    with Kilnd() as daemon:
        kiln = [build_folder() / "clients/cli/kiln", "--address", daemon.address]
        subprocess.run([*kiln, "user", "add", "ann"], check=True, capture_output=True)
        assert get(daemon, "/metrics")[0] == 401
        assert get(daemon, "/healthz") == (200, "alive\n")
        assert get(daemon, "/readyz") == (200, "ready\n")
        subprocess.run([*kiln, "drain", "cpu:0"], check=True, capture_output=True)
        assert get(daemon, "/healthz") == (200, "alive\n")
        assert get(daemon, "/readyz") == (503, "no device takes new work: each is draining or has failed\n")


def test_the_metrics_say_when_the_certificate_expires_and_what_the_process_uses(tmp_path):
    before = time.time()
    chain, key = certificate(tmp_path, days=30)
    with Kilnd(flags=[f"--tls_certificate={chain}", f"--tls_key={key}", "--metrics_plain_http"]) as daemon:
        expiry = daemon.metric("kiln_tls_certificate_expiry_timestamp_seconds")
        month = datetime.timedelta(days=30).total_seconds()
        assert int(before) + month <= expiry <= time.time() + month
        assert int(before) - 1 <= daemon.metric("process_start_time_seconds") <= time.time() + 1
        assert daemon.metric("process_open_fds") <= daemon.metric("process_max_fds")
        assert 0 < daemon.metric("process_cpu_seconds_total") < 1000 * os.cpu_count()
    with Kilnd() as daemon:
        assert daemon.metric("kiln_tls_certificate_expiry_timestamp_seconds", absent=-1) == -1
