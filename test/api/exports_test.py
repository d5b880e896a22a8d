# Owns: that what a shared library shows is its list of names, and that headers, list and header tests agree.
# May include: the Python library; nm.
# Called by: the test exports of each variant: exports_test.py <library.so> <version script> <header_calls.h> <public header>...
# Invariants: prints what differs, nothing else.
import re
import subprocess
import sys


def names_of_map(text):
    body = re.search(r"global:(.*)local:\s*\*;", re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.S).group(1)
    names = re.findall(r"[A-Za-z_]\w*(?=;)", body)
    return names, sorted({n for n in names if names.count(n) > 1})


def names_of_library(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()}


def names_of_header(text):
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)
    declared = re.findall(r"mi_decl_export\b[^;{]*?\b(mi_\w+)\s*\(", text)
    inline = re.findall(r"static inline[^;{]*?\b(mi_\w+)\s*\(", text)
    return set(declared), set(inline)


def is_for_other_size(name, wide):
    # size_t is m on 64 bits and j on 32 bits.
    other = "j" if wide else "m"
    return re.match(r"(_Zn[wa]|_Zd[la]Pv)" + other, name) is not None


def main():
    library, export_map, calls, *headers = sys.argv[1:]
    wide = open(library, "rb").read(5)[4] == 2  # ELFCLASS64
    failures = []

    listed, doubled = names_of_map(open(export_map).read())
    listed = {n for n in listed if not is_for_other_size(n, wide)}
    shown = names_of_library(library)
    declared, inline = set(), set()
    for header in headers:
        d, i = names_of_header(open(header).read())
        declared |= d
        inline |= i
    called = open(calls).read()

    if len(declared) < 100:
        failures.append(f"only {len(declared)} functions are declared: the headers are not understood")
    failures += [f"listed twice: {n}" for n in doubled]
    failures += [f"shown but not listed: {n}" for n in sorted(shown - listed)]
    failures += [f"listed but not shown: {n}" for n in sorted(listed - shown)]
    failures += [f"declared but not listed: {n}" for n in sorted(declared - listed)]
    failures += [f"listed but not declared: {n}" for n in sorted(listed - declared) if n.startswith("mi_")]
    failures += [f"never called in {calls}: {n}" for n in sorted(declared | inline) if not re.search(rf"\b{n}\b", called)]
    # Each declaration is preceded by a sentence that begins with the function's name.
    for header in headers:
        text = open(header).read()
        names = names_of_header(text)
        failures += [f"{header}: no sentence begins with {n}" for n in sorted(names[0] | names[1]) if not re.search(rf"^// {n} ", text, re.M)]

    for failure in failures:
        print(f"{library}: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
