"""Certificates for daemons that tests start."""

import pathlib
import subprocess


def certificate(folder: pathlib.Path, name: str = "server", days: int = 365) -> tuple[pathlib.Path, pathlib.Path]:
    """Returns a certificate for 127.0.0.1 that is its own authority, and its key."""
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
         "-subj", "/CN=box", "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True)
    return paths


def expired(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Returns an expired certificate, and its key."""
    _, key = certificate(folder, "expired")
    request = subprocess.run(["openssl", "req", "-new", "-key", key, "-subj", "/CN=box"], check=True,
                             capture_output=True)
    chain = folder / "expired.pem"
    subprocess.run(["openssl", "x509", "-req", "-signkey", key, "-days", "-1", "-out", chain], check=True,
                   input=request.stdout, capture_output=True)
    return chain, key
