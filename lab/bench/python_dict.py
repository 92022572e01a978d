#!/usr/bin/env python3
"""Operations a second of the Python package's dict, one transaction each, beside those of Python's own dict.

    PYTHONPATH=build/python bench/python_dict.py [--dir DIR] [--keys N] [--operations N] [--runs N]

The two run in turn; the best of the runs is printed, and what an empty loop of the same length takes is left in. The pool lies in DIR
(/dev/shm unless told otherwise): its durability is printed.
"""

import argparse
import os
import tempfile
import time

import stele


def rate(operation, arguments):
    begun = time.perf_counter()
    operation(arguments)
    return len(arguments) / (time.perf_counter() - begun)


def sets(d):
    def run(keys):
        for k in keys:
            d[k] = 7
    return run


def gets(d):
    def run(keys):
        for k in keys:
            d[k]
    return run


def inserts(d):
    def run(keys):
        d.clear()
        for k in keys:
            d[k] = k
    return run


def tests(d):
    def run(keys):
        for k in keys:
            k in d
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    wanted = parser.parse_args()
    keys = [f"key {i}" for i in range(wanted.keys)]
    order = [keys[i * 7919 % wanted.keys] for i in range(wanted.operations)]
    best = {}
    with tempfile.TemporaryDirectory(dir=wanted.dir) as directory, stele.open(os.path.join(directory, "pool"), size="256M") as pool:
        for _ in range(wanted.runs):
            for name, d in (("stele", pool.root), ("dict", {})):
                for what, make, arguments in (("insert", inserts, keys), ("set", sets, order), ("get", gets, order), ("in", tests, order)):
                    best[what, name] = max(best.get((what, name), 0), rate(make(d), arguments))
        print(f"durability: {pool.durability}; mechanism: {pool.mechanism}; {wanted.keys} keys; operations a second, best of {wanted.runs}")
    for what in ("insert", "set", "get", "in"):
        print(f"{what:8} {best[what, 'stele']:12,.0f}   of dict {best[what, 'dict']:12,.0f}")


if __name__ == "__main__":
    main()
