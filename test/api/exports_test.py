# Owns: that the list of the interface, what a shared library shows, what the headers declare and what test programs call agree.
# May include: the Python library; nm.
# Called by: the test exports of each variant. Which artifacts define the names besides is a matter of test/consumer/artifacts_test.py.
# Invariants: prints what differs, nothing else.
"""exports_test.py --library LIBRARY --map VERSION_SCRIPT --interface LIST --not_yet LIST --calls FILE... --programs PROGRAM... --headers FILE...

--calls are sources that use what the headers define themselves (macros, inline functions); --programs are linked with the library and
need from it what they call."""
import argparse
import re
import subprocess
import sys


def names_of_map(text):
    body = re.search(r"global:(.*)local:\s*\*;", re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.S).group(1)
    names = re.findall(r"[A-Za-z_]\w*(?=;)", body)
    return names, sorted({n for n in names if names.count(n) > 1})


def names_of_program(path, which):
    lines = subprocess.run(["nm", "-D", which, path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()}


def names_of_header(text):
    text = re.sub(r"//[^\n]*", "", text)
    macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(mi_\w+_tp)\(", text, re.M)
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)
    declared = re.findall(r"mi_decl_export\b[^;{]*?\b(mi_\w+|malloc_\w+)\s*\(", text)
    inline = re.findall(r"static inline[^;{]*?\b(mi_\w+)\s*\(", text)
    return set(declared), set(inline), set(macros)


def lines_of(path):
    return [line.strip() for line in open(path) if line.strip() and not line.startswith("#")]


def for_size(name, wide):
    # size_t is m on 64 bits and j on 32 bits.
    return name if wide else re.sub(r"^(_Zn[wa]|_Zd[la]Pv)m", r"\1j", name)


def is_for_other_size(name, wide):
    other = "j" if wide else "m"
    return re.match(r"(_Zn[wa]|_Zd[la]Pv)" + other, name) is not None


def main():
    parser = argparse.ArgumentParser()
    for one in ("library", "map", "interface", "not_yet"):
        parser.add_argument("--" + one, required=True)
    for many in ("calls", "programs", "headers"):
        parser.add_argument("--" + many, nargs="+", required=True)
    args = parser.parse_args()
    wide = open(args.library, "rb").read(5)[4] == 2  # ELFCLASS64
    failures = []

    interface_lines = lines_of(args.interface)
    interface = {for_size(n, wide) for n in interface_lines}
    reasons = dict(line.partition(": ")[::2] for line in lines_of(args.not_yet))
    listed, doubled = names_of_map(open(args.map).read())
    listed = {n for n in listed if not is_for_other_size(n, wide)}
    shown = names_of_program(args.library, "--defined-only")
    declared, inline, macros = (set().union(*found) for found in zip(*(names_of_header(open(h).read()) for h in args.headers)))
    called = set().union(*(names_of_program(p, "--undefined-only") for p in args.programs))
    used = "\n".join(open(path).read() for path in args.calls)

    if len(declared) < 100:
        failures.append(f"only {len(declared)} functions are declared: the headers are not understood")
    if len(called & shown) < 100:
        failures.append(f"the test programs need only {len(called & shown)} names of it")
    failures += [f"{args.interface}: twice: {n}" for n in sorted({n for n in interface_lines if interface_lines.count(n) > 1})]
    failures += [f"{args.not_yet}: no reason: {n}" for n, reason in reasons.items() if not reason]
    failures += [f"{args.not_yet}: not in {args.interface}: {n}" for n in reasons if n not in interface]
    failures += [f"{args.not_yet}: is there now, so its line goes: {n}" for n in reasons if n in shown | declared]
    promised = interface - set(reasons)
    failures += [f"listed twice: {n}" for n in doubled]
    failures += [f"shown but not listed: {n}" for n in sorted(shown - listed)]
    failures += [f"of the interface but not shown: {n}" for n in sorted(promised - shown)]
    failures += [f"shown but not of the interface: {n}" for n in sorted(shown - interface) if not is_of_parts(n)]
    failures += [f"listed but not shown: {n}" for n in sorted(listed - shown)]
    failures += [f"declared but not listed: {n}" for n in sorted(declared - listed)]
    failures += [f"of the interface but not declared: {n}" for n in sorted(promised - declared) if n.startswith("mi_")]
    failures += [f"called by no test program: {n}" for n in sorted(promised - called)]
    failures += [f"used in no source of --calls: {n}" for n in sorted(inline | macros) if not re.search(rf"\b{n}\b", used)]
    # Each declaration is preceded by a sentence that begins with the function's name.
    for header in args.headers:
        text = open(header).read()
        names = names_of_header(text)
        failures += [f"{header}: no sentence begins with {n}" for n in sorted(names[0] | names[1]) if not re.search(rf"^// {n} ", text, re.M)]

    for failure in failures:
        print(f"{args.library}: {failure}", file=sys.stderr)
    return 1 if failures else 0


def is_of_parts(name):
    """Names that some variants show besides (src/api/shared/*.map); they are the C library's, and tested elsewhere."""
    return name in ("__sysv_signal", "bsd_signal", "sigaction", "sigignore", "signal", "sigset", "sysv_signal") or re.fullmatch(r"(__)?(w?mem(cpy|move|pcpy|set|ccpy)|st[rp]n?(cpy|cat)|bcopy|bzero|explicit_bzero)(_chk)?", name) is not None


if __name__ == "__main__":
    sys.exit(main())
