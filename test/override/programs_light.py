# Owns: the rows that run in every test run, a few seconds each.
# May include: runner.py.
# Called by: run.py and selftest.py.
# Invariants: every package named here is a line of packages-light.txt, and every line there is named here.
from runner import Row

# The rows ask for more memory than there can be; a variant that shows errors says so.
IMPOSSIBLE = r"mimalloc[a-z-]*: out-of-memory: no memory for \d{19} bytes"
DURATIONS = (r"\bin \d+(\.\d+)?s\b", "in T")

ROWS = (
    Row("bash", ("bash",), ("bash",), ("bash", "@bash.sh"), "^bash done$", ("bash", "sort"), ("bash", "--version")),
    Row("coreutils", ("coreutils", "gawk"), ("sort", "b2sum", "awk"), ("bash", "@coreutils.sh"), "^coreutils done$",
        ("sort", "split", "sha256sum", "wc", "shuf", "factor", "ls"), ("sort", "--version")),
    Row("text tools", ("grep", "sed", "findutils", "diffutils", "gawk"), ("grep", "sed", "find", "xargs", "diff", "awk"), ("bash", "@text.sh"),
        "^text tools done$", ("grep", "sed", "find", "xargs", "awk", "diff"), ("grep", "--version")),
    Row("tar", ("tar", "gzip", "xz-utils", "bzip2"), ("tar", "gzip", "xz", "bzip2"), ("bash", "@archive.sh"), "^archive done$",
        ("tar", "gzip", "xz", "bzip2"), ("tar", "--version")),
    Row("git", ("git",), ("git",), ("bash", "@git.sh"), "^git done$", ("git",), ("git", "--version")),
    Row("perl", ("perl",), ("perl",), ("perl", "@hashes.pl"), "^perl done$", ("perl",), ("perl", "--version"), env=(("PERL_HASH_SEED", "0"),)),
    Row("python3", ("python3",), ("/usr/bin/python3",), ("/usr/bin/python3", "@work.py"), "^python done$", ("python3",),
        ("/usr/bin/python3", "--version"), env=(("PYTHONHASHSEED", "0"), ("PYTHONMALLOC", "malloc"))),
    Row("python3 own tests", ("python3", "libpython3.11-testsuite"), ("/usr/bin/python3", "/usr/lib/python3*/test/test_dict.py"),
        ("/usr/bin/python3", "-m", "unittest", "-q", "test.test_dict", "test.test_list", "test.test_re", "test.test_array", "test.test_deque",
         "test.test_unicode", "test.test_memoryview", "test.test_ctypes", "test.test_sort", "test.test_struct", "test.test_xml_etree_c"),
        "^OK", ("python3",), ("/usr/bin/python3", "--version"), compare=("exit", "stderr"), normalise=(DURATIONS,), env=(("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"))),
    Row("python3 own tests, threads", ("python3", "libpython3.11-testsuite"), ("/usr/bin/python3", "/usr/lib/python3*/test/test_threading.py"),
        ("/usr/bin/python3", "-m", "unittest", "-q", "test.test_json", "test.test_thread", "test.test_threading.ThreadTests",
         "test.test_threading.ThreadJoinOnShutdown"),
        "^OK", ("python3",), ("/usr/bin/python3", "--version"), compare=("exit", "stderr"), normalise=(DURATIONS,), env=(("PYTHONHASHSEED", "0"),)),
    Row("node", ("nodejs",), ("node",), ("node", "@work.js"), "^node done$", ("node",), ("node", "--version")),
    Row("gcc", ("gcc", "libc6-dev", "binutils", "gawk"), ("gcc", "nm", "objdump", "awk"), ("bash", "@gcc.sh"), "^gcc done$",
        ("gcc", "cc1", "as", "collect2", "ld", "lto1", "objdump", "big"), ("gcc", "--version")),
    Row("g++", ("g++",), ("g++",), ("bash", "@cxx.sh", "g++"), r"^g\+\+ done$", ("g++", "cc1plus", "work"), ("g++", "--version"), told=IMPOSSIBLE),
    Row("cmake", ("cmake", "make", "g++", "gcc"), ("cmake", "make", "ctest", "gcc", "g++"), ("bash", "@cmake.sh"), "^cmake done$",
        ("cmake", "make", "ctest"), ("cmake", "--version")),
    Row("sqlite3", ("sqlite3",), ("sqlite3",), ("sqlite3", "-batch", "-init", "/dev/null", ":memory:", ".read '@work.sql'"), "^sqlite done$",
        ("sqlite3",), ("sqlite3", "--version")),
    Row("redis", ("redis-server", "redis-tools", "gawk"), ("redis-server", "redis-cli", "redis-benchmark", "awk"), ("bash", "@redis.sh"),
        "^redis done$", ("redis-server", "redis-cli", "redis-benchmark"), ("redis-server", "--version")),
    Row("nginx", ("nginx", "apache2-utils"), ("nginx", "ab"), ("bash", "@nginx.sh"), "^nginx done$", ("nginx", "ab"), ("nginx", "-v")),
    Row("gdb", ("gdb", "gcc", "libc6-dev"), ("gdb", "gcc"), ("bash", "@gdb.sh"), "^gdb done$", ("gdb", "small"), ("gdb", "--version")),
    Row("vim", ("vim",), ("vim",), ("bash", "@vim.sh"), "^vim done$", ("vim",), ("vim", "--version")),
    Row("man", ("man-db", "groff-base"), ("man", "groff", "mandb", "lexgrog"), ("bash", "@man.sh"), "^man done$", ("man", "groff", "troff"),
        ("man", "--version")),
    Row("file", ("file",), ("file",), ("bash", "@tools.sh", "file"), "^file done$", ("file",), ("file", "--version")),
    Row("ssh-keygen", ("openssh-client",), ("ssh-keygen",), ("bash", "@tools.sh", "ssh-keygen"), "^ssh-keygen done$", ("ssh-keygen",), ("ssh", "-V")),
    Row("gpg", ("gpg", "gpg-agent", "gpgconf"), ("gpg", "gpg-agent", "gpgconf"), ("bash", "@tools.sh", "gpg"), "^gpg done$", ("gpg", "gpg-agent"),
        ("gpg", "--version")),
    Row("openssl", ("openssl",), ("openssl",), ("bash", "@tools.sh", "openssl"), "^openssl done$", ("openssl",), ("openssl", "version")),
)
