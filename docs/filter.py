#!/usr/bin/env python3
# Owns: turning the comments of our headers into what Doxygen reads.
# May include: Python's standard library.
# Called by: doxygen, as its filter: filter.py HEADER, to standard output; docs/pages_test.py.
# Invariants: code stays as it is; a comment that documents nothing goes to the group that it stands in.
"""In a header, `// ---- Title. More. ----` begins a group, whose example is docs/examples/<title in lower case with _>.c or .cc.
A comment right above a declaration documents it, one behind a field or an enumerator documents that. Lines that begin with the name of
a macro, above an #if, a #define or a blank line, document macros. The four lines at the top say what the file is."""
import os
import re
import sys

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples")
COMMENT = re.compile(r"^\s*//( |$)")
MACRO = re.compile(r"^((?:mi|MI)_\w+)(?:\([\w, ]*\))? ")


def slug(title):
    return re.sub(r"\W+", "_", title.replace("+", "p")).strip("_").lower()


def example(identifier):
    """The file name of a group's example, None where there is none."""
    names = [identifier + end for end in (".c", ".cc")]
    return next((n for n in names if os.path.exists(os.path.join(EXAMPLES, n))), None)


def words(line):
    """What a line of a comment says, safe from Doxygen's markup: only lists are meant."""
    text = re.sub(r"^\s*// ?", "", line)
    bullet = re.match(r"\* ", text)
    text = re.sub(r"(?<!^)\*", r"\\*", text) if bullet else text.replace("*", r"\*")
    return text.replace("<", r"\<").replace(">", r"\>")


def heading(block):
    """(title, more) of a comment that begins a group, and how many of its lines that takes."""
    if not block[0].startswith("// ---- "):
        return None
    count = next(i for i, line in enumerate(block, 1) if line.endswith(" ----"))
    text = " ".join(re.sub(r"^// (---- )?", "", line) for line in block[:count])[:-len(" ----")]
    title, _, more = text.partition(". ")
    return title.rstrip("."), more, count


def convert(lines, name):
    """Yields the lines of a header for Doxygen. Of one without groups it shows only what it says at the top."""
    group = None
    in_template = False
    plain = not list(groups(lines))
    i = 0
    while i < len(lines):
        if not COMMENT.match(lines[i]):
            # The members of a template are what the standard asks for, and end with it.
            if in_template and lines[i] == "};":
                in_template = False
                yield "/// @endcond"
            # A field's or an enumerator's own comment.
            yield re.sub(r"^(\s+[^/\s][^/]*[,;]\s*)// (.*)$", lambda m: m.group(1) + "///< " + words(m.group(2)), lines[i])
            if i > 0 and lines[i - 1].startswith("template <") and re.match(r"struct .*\{$", lines[i]):
                in_template = True
                yield "/// @cond"
            i += 1
            continue
        end = i
        while end < len(lines) and COMMENT.match(lines[end]):
            end += 1
        block, following = lines[i:end], lines[end] if end < len(lines) else ""
        at_top, i = i == 0, end
        if at_top:
            yield "/// @file " + name
            yield from ("/// @par " + re.sub(r"^(\w[^:]*): ", "\\1\n/// ", words(line)) if re.match(r"// [A-Z][^:]*:", line) else "/// " + words(line) for line in block)
            if plain:
                yield from ("", "/// @cond", "")
            continue
        begun = heading(block)
        if begun:
            title, more, count = begun
            if group:
                yield "/// @}"
                yield ""
            group = slug(title)
            yield "/// @defgroup %s %s" % (group, title)
            yield "/// " + words(more)
            block = block[count:]
            if not is_declaration(following):
                yield from ("/// " + words(line) for line in block)
                block = []
            if example(group):
                yield "/// @par Example"
                yield "/// @include " + example(group)
            yield "/// @{"
            yield ""
        yield from document(block, following, group)
    if group:
        yield "/// @}"
    if plain:
        yield "/// @endcond"


def is_declaration(line):
    """Whether a comment above this line is the line's. The preprocessor's lines but #define, and closing ones, declare nothing."""
    return re.match(r"\s*($|#\s*(?!\s*define)|\}|extern \"C\"|//)", line) is None


def document(block, following, group):
    if not block:
        return
    if is_declaration(following) and not re.match(r"\s*#", following):
        yield from ("/// " + words(line) for line in block)
        return
    if not MACRO.match(words(block[0])):
        if group:
            yield from ("/// @}", "", "/// @addtogroup " + group)
            yield from ("/// " + words(line) for line in block)
            yield from ("/// @{", "")
        return
    for line in block:
        text = words(line)
        if MACRO.match(text):
            yield ""
            yield "/// @def " + MACRO.match(text).group(1)
        yield "/// " + text
    yield ""


def groups(lines):
    """The (identifier, title) of each group."""
    for i, line in enumerate(lines):
        if line.startswith("// ---- "):
            title = heading(lines[i:])[0]
            yield slug(title), title


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        print("\n".join(convert(source.read().split("\n"), os.path.basename(sys.argv[1]))))
