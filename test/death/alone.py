#!/usr/bin/env python3
# Owns: that the rows of a mitigation hold with it alone, and do not with it off: the control that a row can fail.
# May include: test/lib/run_rows.py.
# Called by: the alone_<mitigation> targets; by hand: alone.py MITIGATION --alone LIBRARY --off LIBRARY --bin FOLDER.
# Invariants: the rows, and which of them need more, stand in alone.txt; every mitigation of policy/features.def has a line there.
import argparse
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))
sys.dont_write_bytecode = True
import run_rows


def lines():
    found = {}
    for line in open(os.path.join(HERE, "alone.txt")):
        if not line.startswith("#"):
            fields = [f if f != "-" else "" for f in line.split()]
            if len(fields) != 5:
                sys.exit("alone.txt: a line has five columns: " + line)
            found[fields[0]] = fields[1:]
    return found


def mistakes_of_table(table):
    """Mitigations without a line, and lines that name other rows than policy/features.def does."""
    text = open(os.path.join(ROOT, "policy", "features.def")).read()
    features = {name.lower(): test for name, test in re.findall(r'^F\(MI_HAS_(\w+), "[^"]*", "[^"]*", "([^"]*)"\)', text, re.M)}
    for name in sorted(set(features) ^ set(table)):
        yield "alone.txt and policy/features.def differ in " + name
    for name in sorted(set(features) & set(table)):
        if features[name].startswith("test/death/") and features[name] != table[name][0]:
            yield "alone.txt has rows of %s that are not those of policy/features.def" % name


def judged(args, library, variant, rows):
    """The reason why each row does not hold, None of those that do. Rows that cannot be run here are left out, and named."""
    args = argparse.Namespace(bin=args.bin, preload=library, plugin=None, variant=variant, slow=args.slow, system=False, sampled="0", under="")

    def one(row):
        try:
            code, out, err, hung = run_rows.run(args, row)
            return row.name, run_rows.judge(args, row, code, out, err, hung)
        except run_rows.Skip as e:
            print("%s [%s] is not run: %s" % (row.name, variant, e))
            return None

    with ThreadPoolExecutor(2) as pool:
        return dict(v for v in pool.map(one, rows) if v)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mitigation")
    parser.add_argument("--alone", required=True, help="the library with the mitigation alone")
    parser.add_argument("--off", required=True, help="the release library")
    parser.add_argument("--bin", action="append", required=True, help="folder of the programs")
    parser.add_argument("--slow", type=float, default=3.0)
    args = parser.parse_args()
    table = lines()
    mistakes = list(mistakes_of_table(table))
    where, rows_of, needs_more, holds_without = table[args.mitigation]
    path, _, start = where.partition(":")
    rows = [r for r in run_rows.read_rows(os.path.join(ROOT, path)) if r.name.startswith(start) and rows_of in r.variants]
    alone = [r for r in rows if not (needs_more and re.search(needs_more, r.name))]
    if not alone:
        sys.exit("no row of %s stands alone" % where)
    for name, reason in judged(args, args.alone, "only_" + args.mitigation, alone).items():
        if reason is not None:
            mistakes.append("%s does not hold with the mitigation alone: %s" % (name, reason))
    controls = 0
    for name, reason in judged(args, args.off, "release", rows).items():
        expected = bool(holds_without and re.search(holds_without, name))
        controls += reason is not None
        if (reason is None) != expected:
            mistakes.append("%s %s with the mitigation off" % (name, "does not hold, as alone.txt says it does: %s" % reason if expected else "holds"))
    if controls == 0:
        mistakes.append("no row of %s fails with the mitigation off" % where)
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


main()
