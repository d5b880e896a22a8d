# Owns: the rows that need large packages or long runs; run by hand.
# May include: runner.py.
# Called by: run.py and selftest.py.
# Invariants: every package named here is a line of packages-heavy.txt or packages-light.txt, and every line there is named here.
from programs_light import DURATIONS, IMPOSSIBLE
from runner import Row

PYTHON = ("/usr/bin/python3",)

ROWS = (
    Row("chromium", ("chromium",), ("chromium",), ("bash", "@media.sh", "chromium"), "^chromium done$", ("chromium",), ("chromium", "--version"),
        timeout=180, own=("chromium", "chrome_crashpad_handler")),
    Row("java", ("default-jdk-headless",), ("java", "javac"), ("bash", "-c", "cp @Work.java . && javac Work.java && java -Xmx300m Work"),
        "^java done$", ("javac", "java"), ("java", "--version"), timeout=120),
    Row("ffmpeg", ("ffmpeg",), ("ffmpeg", "ffprobe"), ("bash", "@media.sh", "ffmpeg"), "^ffmpeg done$", ("ffmpeg", "ffprobe"), ("ffmpeg", "-version"),
        timeout=120),
    Row("ghostscript", ("ghostscript",), ("gs",), ("bash", "@media.sh", "ghostscript"), "^ghostscript done$", ("gs",), ("gs", "--version"), timeout=120),
    Row("imagemagick", ("imagemagick",), ("/usr/bin/convert", "montage", "identify"), ("bash", "@media.sh", "imagemagick"), "^imagemagick done$",
        ("convert", "montage"), ("/usr/bin/convert", "-version"), timeout=120),
    Row("postgresql", ("postgresql",), ("/usr/lib/postgresql/*/bin/initdb", "/usr/lib/postgresql/*/bin/pgbench", "setpriv"), ("bash", "@postgresql.sh"),
        "^postgresql done$", ("initdb", "postgres", "pgbench", "psql", "pg_dump"), ("psql", "--version"), timeout=180),
    Row("clang", ("clang", "g++"), ("clang", "clang++"), ("bash", "@cxx.sh", "clang++"), r"^clang\+\+ done$", ("clang++", "work"), ("clang", "--version"), told=IMPOSSIBLE,
        timeout=120),
    Row("ruby", ("ruby",), ("ruby",), ("ruby", "@work.rb"), "^ruby done$", ("ruby",), ("ruby", "--version"), timeout=120),
    Row("valgrind", ("valgrind", "libc6-dbg", "gcc", "libc6-dev"), ("valgrind", "gcc"), ("bash", "@media.sh", "valgrind"), "^valgrind done$", ("gcc", "bash"),
        ("valgrind", "--version"), timeout=180),
    Row("gcc, big file", ("gcc", "libc6-dev", "binutils", "gawk"), ("gcc", "awk"), ("bash", "@gcc.sh", "1500"), "^gcc done$", ("cc1", "big"),
        ("gcc", "--version"), timeout=300),
    Row("python3 own tests, long", ("python3", "libpython3.11-testsuite"), PYTHON + ("/usr/lib/python3*/test/test_dict.py",),
        PYTHON + ("-m", "unittest", "-q", "test.test_queue", "test.test_weakref", "test.test_gc", "test.test_fork1", "test.test_pickle", "test.test_bz2",
                  "test.test_bytes", "test.test_set", "test.test_exceptions", "test.test_zlib"),
        "^OK", ("python3",), PYTHON + ("--version",), compare=("exit", "stderr"), normalise=(DURATIONS,),
        env=(("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0")), timeout=180),
)
