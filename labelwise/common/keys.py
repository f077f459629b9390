"""The key of a text: the digest of its bytes, by which tasks are merged and docs are sorted."""

import hashlib
import struct

KEY_BYTES = 12
_KEY = struct.Struct(">QI")


def text_key(text: bytes) -> bytes:
    """Digest a text in UTF-8; 95 bits vary, so the chance that two of a million texts share a key is 1 in 10^17."""
    digest = hashlib.blake2b(text, digest_size=KEY_BYTES).digest()
    return digest[:-1] + bytes([digest[-1] | 1])


def key_parts(key: bytes) -> tuple[int, int]:
    """Read a key as two numbers, of 64 and 32 bits, which sort as keys do."""
    high, low = _KEY.unpack(key)
    return high, low


def join_key(high: int, low: int) -> bytes:
    """Make a key from its two numbers."""
    return _KEY.pack(high, low)
