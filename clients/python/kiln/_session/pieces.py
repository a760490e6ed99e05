"""Uploads in pieces; pieces that the daemon has are not sent again."""

import hashlib
import threading
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, Iterator, List, Optional, Set, Tuple

import numpy as np

from kiln._session.rpc import through_cuts
from kiln._session.waiter import Work

if TYPE_CHECKING:
    from kiln._session.blobs import Blobs

# The unit that is sent again after a lost connection.
PIECE_BYTES = 4 << 20
# The most pieces that wait between the thread that names them and the senders.
PIECES_AT_ONCE = 16
# The most pieces in one question to the daemon. A sum takes a tenth of a digest's time.
SUMS_AT_ONCE = 64
DIGESTS_AT_ONCE = 16
# The most pieces in one call: after a cut, the daemon is asked which of them it has. And the number
# of concurrent calls: with two, threads would wake each other more often.
PIECES_OF_A_CALL = 256
CALLS = 1
# An older daemon takes one piece per call. With one call at a time, each would wait for a round
# trip, which is 100 ms on a link of 50 ms each way.
CALLS_OF_ONE_PIECE = 4

_DIGEST = "sha256:"

# A piece's name and its bytes.
Piece = Tuple[str, memoryview]


def sum_name(data: memoryview) -> str:
    """Returns the prefix of the names of blobs with this sum (see UploadHeader.blob)."""
    whole = data.nbytes & ~7
    total = int(np.add.reduce(np.frombuffer(data[:whole], "<u8")))
    total += int.from_bytes(data[whole:], "little")
    return f"sum64:{total % (1 << 64):016x}"


def digest_name(data: memoryview) -> str:
    return _DIGEST + hashlib.sha256(data).hexdigest()


def _are_equal(one: memoryview, other: memoryview) -> bool:
    return np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8))


class _Batch:
    """The pieces that one call carries."""

    __slots__ = ("is_over", "pieces")

    def __init__(self, pieces: List[Piece]) -> None:
        self.pieces = pieces
        self.is_over = False  # takes no more


class _ToSend:
    """A bounded queue from the thread that names pieces to those that send. Thread-safe."""

    def __init__(self) -> None:
        self._pieces: Deque[Piece] = deque()
        self._has_ended = False
        self._changed = threading.Condition()

    def put(self, piece: Piece) -> None:
        """Adds a piece; waits while the queue is full."""
        with self._changed:
            while len(self._pieces) >= PIECES_AT_ONCE:
                self._changed.wait()
            self._pieces.append(piece)
            self._changed.notify_all()

    def end(self) -> None:
        """Declares that no more pieces follow."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def take_for(self, batch: _Batch) -> Optional[Piece]:
        """Waits for the next piece and adds it to the batch.

        Returns None if no more pieces follow, or the batch is full or over.
        """
        with self._changed:
            while not batch.is_over and len(batch.pieces) < PIECES_OF_A_CALL:
                if self._pieces:
                    piece = self._pieces.popleft()
                    batch.pieces.append(piece)
                    self._changed.notify_all()
                    return piece
                if self._has_ended:
                    break
                self._changed.wait()
            return None

    def close(self, batch: _Batch) -> None:
        """Marks the batch as over: a call that has ended may still ask for more pieces."""
        with self._changed:
            batch.is_over = True
            self._changed.notify_all()


class PieceUpload:
    """One upload of content-addressed pieces: named on this thread, sent on others meanwhile."""

    def __init__(self, blobs: "Blobs", data: memoryview, work: Work) -> None:
        self._blobs = blobs
        self._pieces = [data[start : start + PIECE_BYTES]
                        for start in range(0, data.nbytes, PIECE_BYTES)]
        self._work = work
        self._to_send = _ToSend()
        # The names of all pieces that the daemon may have for this session by now.
        self.offered: Set[str] = set()
        self._knows_sums = True  # assumed of the daemon until it shows otherwise
        # By sum: whether the daemon may have it, and the last piece of this upload.
        self._may_be_there: Dict[str, bool] = {}
        self._last: Dict[str, Piece] = {}
        self._failure: Optional[BaseException] = None

    def send(self) -> List[str]:
        """Returns the names of the pieces once the daemon has all of them."""
        calls = CALLS if self._blobs.takes_many else CALLS_OF_ONE_PIECE
        senders = [threading.Thread(target=self._send_some, daemon=True)
                   for _ in range(min(calls, len(self._pieces)))]
        for sender in senders:
            sender.start()
        names: List[str] = []
        try:
            # A few first, then twice as many each time, so that sending begins early and continues.
            asked = calls
            while self._pieces:
                names += self._offer(self._pieces[:asked])
                del self._pieces[:asked]
                asked = min(2 * asked, SUMS_AT_ONCE if self._knows_sums else DIGESTS_AT_ONCE)
        except BaseException as error:
            self._failure = self._failure or error
        self._to_send.end()
        for sender in senders:
            sender.join()
        if self._failure is not None:
            raise self._failure
        return names

    def _offer(self, pieces: List[memoryview]) -> List[str]:
        if self._is_over():
            return []
        names = self._names(pieces)
        by_name = {
            name: piece for name, piece in zip(names, pieces) if name not in self.offered}
        self.offered.update(by_name)
        asked = [name for name in by_name if _DIGEST in name]
        there = set(asked).difference(self._missing(asked))
        for name, piece in by_name.items():
            if name not in there:
                self._to_send.put((name, piece))
        return names

    def _names(self, pieces: List[memoryview]) -> List[str]:
        sums = [sum_name(piece) for piece in pieces] if self._knows_sums else []
        asked = [total for total in dict.fromkeys(sums) if total not in self._may_be_there]
        if asked:
            known = self._blobs.known_sums(asked, self._work)
            self._knows_sums = known is not None
            self._may_be_there.update((total, total in (known or ())) for total in asked)
        if not self._knows_sums:
            return [digest_name(piece) for piece in pieces]
        return [self._name(total, piece) for total, piece in zip(sums, pieces)]

    def _name(self, total: str, piece: memoryview) -> str:
        last = self._last.get(total)
        if last is not None and _are_equal(last[1], piece):
            return last[0]
        unique = digest_name(piece) if self._may_be_there[total] else self._blobs.new_name()
        name = f"{total}:{unique}"
        self._last[total] = (name, piece)
        return name

    def _missing(self, names: List[str]) -> Set[str]:
        return set(self._blobs.missing(names, self._work)) if names else set()

    def _send_some(self) -> None:
        while True:
            batch = _Batch([])
            if self._to_send.take_for(batch) is None:
                return
            if self._is_over():  # only empties the queue
                continue
            try:
                self._send(batch)
            except BaseException as error:
                self._failure = self._failure or error

    def _send(self, batch: _Batch) -> None:
        def transfer() -> None:
            nonlocal batch
            if batch.is_over:  # an earlier attempt was cut off
                batch = _Batch(self._missing_of(batch.pieces))
            if not self._blobs.takes_many:
                for name, piece in batch.pieces:
                    self._blobs.send(name, piece, self._work)
            elif batch.pieces:
                try:
                    self._blobs.send_many(self._through(batch), self._work)
                finally:
                    self._to_send.close(batch)

        through_cuts(self._blobs.stream, self._work, transfer)

    def _through(self, batch: _Batch) -> Iterator[Piece]:
        """Yields the batch's pieces, and new ones until it is full. Runs on the call's thread."""
        yield from list(batch.pieces)
        while not self._is_over():
            piece = self._to_send.take_for(batch)
            if piece is None:
                return
            yield piece

    def _missing_of(self, pieces: List[Piece]) -> List[Piece]:
        missing: Set[str] = set()
        for start in range(0, len(pieces), SUMS_AT_ONCE):
            missing |= self._missing([name for name, _ in pieces[start : start + SUMS_AT_ONCE]])
        return [piece for piece in pieces if piece[0] in missing]

    def _is_over(self) -> bool:
        return self._failure is not None or self._work.abandoned
