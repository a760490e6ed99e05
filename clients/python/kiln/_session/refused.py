"""Explains why a channel could not be opened, from gRPC's message: the cause and the remedy."""

from kiln._session.login import Login

_SAID = "kiln.connect(ca=...), in KILN_CA or as \"ca\" in ~/.config/kiln/config.toml"
# By gRPC's message in lower case, with spaces for underscores: gRPC has no codes for these causes,
# and its versions word them differently. The first match counts.
_CAUSES = (
    (("certificate has expired",),
     "the certificate of {target} has expired. Ask the operator of its kilnd to start kilnd with a "
     "new one (--tls_certificate)"),
    (("certificate is not yet valid",),
     "the certificate of {target} is not valid yet. Set the clock of this machine, or that of the "
     "machine on which the certificate was made"),
    (("certificate verify failed",),
     "the certificate of {target} was not signed by an authority in {ca}, so this may not be the "
     f"daemon that you want. Name the file with its authority as {_SAID}; for a certificate made "
     "as in Kiln's guide \"Sharing a box\" that is the certificate itself, box.pem"),
    (("hostname verification check failed", "is not in peer certificate"),
     "the certificate of {target} is for other names than {host}. Connect with a name in the "
     "certificate (subjectAltName), or ask for a certificate that includes this name"),
    (("wrong version number",),
     "{target} does not use TLS. Unset ca for it (kiln.connect(ca=...), KILN_CA, or \"ca\" in "
     "~/.config/kiln/config.toml), or name the port where kilnd uses TLS"),
)


# A server accepted the connection and closed it at once, or with an alert, which gRPC cannot read.
_HANGS_UP = ("socket closed", "connection reset by peer", "tsi data corrupted")


def explain(target: str, login: Login, message: str) -> str:
    """Returns what to tell the user when connecting to `target` has failed with gRPC's `message`.

    Returns "" if the message only says that nothing answers.
    """
    said = message.lower().replace("_", " ")
    for signs, text in _CAUSES:
        if any(sign in said for sign in signs):
            return text.format(target=target, host=target.rpartition(":")[0],
                               ca=_authority(login))
    if not ("failed to connect" in said and any(sign in said for sign in _HANGS_UP)):
        return ""
    if login.certificate:
        return (f"{target} closed the connection at once. Check that its kilnd accepts "
                f"certificates of the authority of {login.certificate} (--tls_client_ca)")
    if login.ca:
        return ""
    return (f"{target} closed the connection of a client without TLS at once. If its kilnd uses "
            f"TLS, name the file with the authority of its certificate as {_SAID}")


def _authority(login: Login) -> str:
    return "the list of this machine (ca = \"system\")" if login.ca == "system" else login.ca
