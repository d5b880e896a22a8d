# Owns: the reading of tables of what is left out, or comes out otherwise, where allocations are sampled.
# May include: the standard library of Python.
# Called by: run_cases.py and run_rows.py.
# Invariants: nothing is left out without a reason, and no row of a table fits nothing.
"""A row of such a table is

    name | rates | variants | why
    name | rates | variants | why | expected

where the name is a regular expression that fits a whole name, `*` stands for all rates or all variants, and what is expected,
written as in a table of rows, takes the place of what is expected without sampling."""
import collections
import re
import sys

Row = collections.namedtuple("Row", "number name rates variants why expected")


def read(path, names, are_all=True):
    """The rows of the table, of which each fits one of the names at least, where these are all that there are."""
    found = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in line.split(" | ", 4)]
            if len(fields) < 4 or len(fields[3].split()) < 3:
                sys.exit("%s:%d: not `name | rates | variants | why`, and perhaps what is expected" % (path, number))
            name = re.compile(fields[0])
            if are_all and not any(name.fullmatch(n) for n in names):
                sys.exit("%s:%d: there is nothing of the name %s" % (path, number, fields[0]))
            found.append(Row(number, name, fields[1].split(), fields[2].split(), fields[3], fields[4] if len(fields) > 4 else None))
    return found


def of(exceptions, name, rate, variant):
    """The first exception that is made of a name at a rate in a variant, or None."""
    for e in exceptions:
        if e.name.fullmatch(name) and (e.rates == ["*"] or rate in e.rates) and (e.variants == ["*"] or variant in e.variants):
            return e
    return None
