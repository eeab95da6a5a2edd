"""Checks the known answers of `vectors/` from the specifications alone. One line a file; fails on any mismatch.

Python 3.11 or newer, standard library only. It is slow and leaks secrets by its timing: it is for checking, nothing else.
"""

import json
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import beacons
import bls04
import bz03
import cks05
import client
import ecdsa
import founding
import keys
import quorum
import rfc
import sg02
import sh00
import slots
import store

VECTORS = Path(__file__).resolve().parent.parent
# Folder: what checks a file of it.
TOPICS = {
    "rfc9496": rfc.check_9496,
    "rfc9380": rfc.check_9380,
    "bn254": rfc.check_9380,
    "bls": beacons.check_ethereum,
    "drand": beacons.check_drand,
    "sg02": sg02.check,
    "bz03": bz03.check,
    "cks05": cks05.check,
    "bls04": bls04.check,
    "sh00": sh00.check,
    "ecdsa": ecdsa.check,
    "slots": slots.check,
    "quorum": quorum.check,
    "client": client.check,
    "founding": founding.check,
    "keys": keys.check,
    # Those of before are refused by their numbers.
    "store/v7": store.check,
}


def verdict(path):
    """Whether the file holds, and the line to print."""
    start = time.monotonic()
    try:
        holds, told = True, "ok: " + TOPICS[path.parent.relative_to(VECTORS).as_posix()](json.loads(path.read_text()))
    except Exception:
        holds, told = False, "MISMATCH\n" + traceback.format_exc()
    return holds, f"{path.relative_to(VECTORS)!s:<60} {time.monotonic() - start:4.1f} s  {told}"


def main():
    if not __debug__:
        sys.exit("Python was told to leave assertions out, which are what is checked here: run it without -O and PYTHONOPTIMIZE")
    folders = {folder: sorted((VECTORS / folder).glob("*.json")) for folder in TOPICS}
    if missing := [folder for folder, files in folders.items() if not files]:
        sys.exit(f"there are no vectors in {', '.join(missing)}")
    files = [path for files in folders.values() for path in files]
    failed = 0
    with ProcessPoolExecutor() as pool:
        for holds, line in pool.map(verdict, files):
            failed += not holds
            print(line, flush=True)
    if failed or not files:
        sys.exit(f"{failed} of {len(files)} files do not agree with the specifications")
    print(f"all {len(files)} files agree with the specifications")


if __name__ == "__main__":
    main()
