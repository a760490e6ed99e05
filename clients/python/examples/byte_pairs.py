"""GPT-2's byte pair encoding (Sennrich et al., 2016), from its vocab.json and merges.txt."""

import json
import pathlib
import re

# Words with the space before them, numbers, other characters, spaces.
_PIECES = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def _visible_bytes():
    """A printable character for each byte: the files hold no control characters or spaces."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: chr(byte) for byte in shown}
    hidden = [byte for byte in range(256) if byte not in table]
    return {**table, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


class BytePairs:
    """Text to tokens and back.

    Args:
      folder: where vocab.json and merges.txt are.
    """

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.number = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
        pairs = [tuple(line.split()) for line in lines if line and not line.startswith("#version")]
        self.rank = {pair: i for i, pair in enumerate(pairs)}
        self.shown = _visible_bytes()
        self.byte = {character: byte for byte, character in self.shown.items()}
        self.token = {number: token for token, number in self.number.items()}

    def encode(self, text):
        """The tokens' numbers."""
        return [self.number[part] for piece in _PIECES.findall(text) for part in self._merged(
            [self.shown[byte] for byte in piece.encode()])]

    def _merged(self, parts):
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(pairs, key=lambda pair: self.rank.get(pair, len(self.rank)))
            if best not in self.rank:
                break
            merged, i = [], 0
            while i < len(parts):
                whole = i + 1 < len(parts) and (parts[i], parts[i + 1]) == best
                merged.append("".join(best) if whole else parts[i])
                i += 2 if whole else 1
            parts = merged
        return parts

    def decode(self, numbers):
        """The text; bytes that are no UTF-8 become question marks."""
        characters = "".join(self.token[number] for number in numbers)
        return bytes(self.byte[character] for character in characters).decode(errors="replace")
