# Owns: words that no file of the tree may hold: places of one machine, and work left undone.
# May include: tree.py.
# Called by: the build, as a test.
# Invariants: each pattern is written so that it does not match itself.
import re

import tree

WORDS = (
    (r"\bsub-?[a]gents?\b", "no word of this project"),
    (r"/[w]ork/", "a path of one machine"),
    (r"(?<![\w.$}])/[r]oot/", "a path of one machine"),
    (r"(?<![\w.$}])/[h]ome/\w", "a path of one machine"),
    (r"\b(?:deb\.[d]ebian\.org|registry\.[n]pmjs\.org|pypi\.[o]rg|proxy\.[g]olang\.org|mirror\.[b]azel\.build|bcr\.[b]azel\.build)\b", "a host"),
    (r"\b(?:T[O]DO|F[I]XME|H[A]CK)\b", "left undone: do it, or file it"),
    (r"(?:^|[^X\w])[X]XX(?:[^X\w]|$)", "left undone: do it, or file it"),
)
PATTERNS = [(re.compile(pattern), why) for pattern, why in WORDS]


def check(files):
    for path, text in files.items():
        for pattern, why in PATTERNS:
            for match in pattern.finditer(text):
                yield "%s:%d: `%s`: %s" % (path, text.count("\n", 0, match.start()) + 1, match.group(0).strip(), why)


SAMPLES = [{"README.md": word + "\n"} for word in (
    "a sub" + "agent", "cd /wor" + "k/main", "see /ro" + "ot/x", "/ho" + "me/me", "http://deb.deb" + "ian.org/", "// TO" + "DO: later", "// X" + "XX")]
GOOD = [{"README.md": "mktemp -d XXXXXX, /work, $X/root/x\n"}]

if __name__ == "__main__":
    tree.main(check, SAMPLES, GOOD)
