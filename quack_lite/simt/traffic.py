"""What one request of a warp costs: sectors of global memory, wavefronts of shared memory.

Sources: global memory is moved in sectors of 32 bytes (CUDA C++ Programming Guide, "Device Memory Accesses";
Best Practices Guide, "Coalesced Access to Global Memory"). Shared memory has 32 banks of 4 bytes, and lanes that want
the same word share it (Programming Guide, "Compute Capability 5.x", "Shared Memory"). A request of 64 bits a lane goes
through in two parts, the halves of the warp, one of 128 bits in four, its quarters.

Measured on an H200 (records/simt): where lanes i and i ^ 1 read the same vector, two parts go through as one. Then a
read of 64 bits takes 1 wavefront and not 2, one of 128 bits 2 and not 4, also where all lanes read one vector. Where
only lanes i and i + 16 (64 bits), or i and i + 8 (128 bits), read the same vector, no parts go through together.
Assumed, since the record cannot tell: parts 0 and 1 are one, and 2 and 3, each two for themselves; all neighbours in
both must agree; a lane that asks for nothing agrees only with another such lane. Whether parts are also one where lanes
i and i ^ 2 read the same vector, as is reported elsewhere, was not measured: here they are not. Nor are parts of a
store: in the record no two lanes store to one vector.
"""

import numpy as np

from quack_lite.simt.order import WARP

SECTOR = 32
BANKS = 32
WORD = 4
PARTS = 4  # of a request to shared memory, at most


def span_of(address: np.ndarray, width: int, size: int) -> np.ndarray:
    """(k, most) the pieces of `size` bytes that `width` bytes at each address lie in, the last one repeated."""
    most = (width + size - 2) // size + 1
    first, last = address // size, (address + width - 1) // size
    return np.minimum(first[:, None] + np.arange(most), last[:, None])


def words_of(address: np.ndarray, width: int) -> np.ndarray:
    """(k, words) the 4-byte words of each lane; a narrower access lies in one."""
    return address[:, None] // WORD + np.arange(max(1, width // WORD))


def sectors(address: np.ndarray, width: int) -> np.ndarray:
    """(W,) distinct sectors of each warp. address: (32 W,) bytes, -1 where a lane asks for nothing."""
    touched = np.where(address[:, None] < 0, -1, span_of(address, width, SECTOR))
    ordered = np.sort(touched.reshape(len(address) // WARP, -1), axis=1)
    fresh = ordered >= 0
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return fresh.sum(1)


def parts(address: np.ndarray, width: int) -> np.ndarray:
    """(32 W,) the part of a store that each lane is in; PARTS numbers a warp, of which narrow requests use fewer."""
    lane = np.arange(len(address))
    return lane // WARP * PARTS + lane % WARP * max(1, width // WORD) // WARP


def parts_of_read(address: np.ndarray, width: int) -> np.ndarray:
    """As `parts`, of a read: two of them are one where each two neighbours read the same vector."""
    part = parts(address, width)
    pair = part // 2
    differ = address != address[np.arange(len(address)) ^ 1]
    return np.where(np.bincount(pair, weights=differ)[pair] == 0, 2 * pair, part)


def wavefronts(address: np.ndarray, width: int, part: np.ndarray) -> np.ndarray:
    """(W,) wavefronts of each warp: over its parts, the most distinct words that any bank has to give.

    address: (32 W,) bytes, -1 where a lane asks for nothing.  part: (32 W,) of `parts` or `parts_of_read`.
    """
    asking = address >= 0
    words = words_of(address[asking], width)
    end = words.max(initial=0) + 1
    wanted = np.unique(part[asking, None] * end + words)
    bank = wanted // end * BANKS + wanted % end % BANKS
    given = np.bincount(bank, minlength=len(address) // WARP * PARTS * BANKS)
    return given.reshape(-1, PARTS, BANKS).max(2).sum(1)


def without_conflict(address: np.ndarray, part: np.ndarray) -> np.ndarray:
    """(W,) the wavefronts that the requests would take if no two lanes met in a bank: one for each part with a lane."""
    lanes = np.bincount(part[address >= 0], minlength=len(address) // WARP * PARTS)
    return (lanes.reshape(-1, PARTS) > 0).sum(1)
