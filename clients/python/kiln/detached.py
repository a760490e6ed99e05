"""Sessions that were detached under a name and are attached by another process."""

from typing import Any, Dict, Optional

import numpy as np

from kiln._basics.errors import InvalidArgument
from kiln._graph import node
from kiln._graph.realize import buffer_of
from kiln._graph.realize import realize as _realize
from kiln._session import connection as _connections
from kiln._session.login import Login
from kiln._tensor.base import wrap
from kiln.tensor import Tensor

__all__ = ["attach"]


def attach(name: str, address: Optional[str] = None, *, token: str = "", ca: str = "",
           certificate: str = "", key: str = "") -> Dict[str, Tensor]:
    """Attaches to a session that was left by `Connection.detach`, in this process or another one.

    Returns the tensors by their names, and makes this the session that tensors use from now on, as
    `kiln.connect` does; see there for the other arguments. The process that had the session before
    cannot use it any more. If this process dies, the daemon keeps the session for the same time
    again; if this process exits normally, the session is closed unless it is detached once more.
    Raises NotFound if the user has no session of that name.

    >>> kiln.connect().detach("evening", tensors={"weights": kiln.zeros(2)})
    >>> kiln.attach("evening")["weights"].tolist()
    [0.0, 0.0]
    """
    connection = _connections.open_default(
        Login(address or "", token, ca, certificate, key), detached_name=name)
    return {key: wrap(node.value(buffer)) for key, buffer in connection.take_attached().items()}


def _buffers_of(connection: Any, values: Dict[str, Any]) -> Dict[str, Any]:
    tensors = {key: _as_tensor(key, value) for key, value in values.items()}
    _realize(tensors.values())
    buffers = {key: buffer_of(tensor._node, connection) for key, tensor in tensors.items()}
    for key, buffer in buffers.items():
        if buffer.connection is not connection:
            raise InvalidArgument(f"the tensor {key!r} belongs to another connection")
    return buffers


def _as_tensor(key: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (bool, int, float, np.generic, np.ndarray)):
        raise InvalidArgument(
            f"{key!r} is a {type(value).__name__}; a session can keep tensors, numbers and NumPy "
            "arrays. Give each entry of a list its own name")
    # NumPy's conversion, so that a Python float keeps all its bits.
    return Tensor(np.asarray(value))


_connections.set_buffers_of(_buffers_of)
