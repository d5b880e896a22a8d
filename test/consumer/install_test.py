# Owns: that projects of others find what is installed, by CMake and by pkg-config, and run on it.
# May include: Python's standard library.
# Called by: the build, as a test of each variant.
# Invariants: the installation is moved away from where it was made before CMake uses it; a request that cannot be met is the control.
"""install_test.py INSTALLER MIMALLOC_H SONAME_FILE PROJECT/consumer.c STEM"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

INSTALLER, HEADER, SHARED, SOURCE, STEM = [os.path.abspath(p) for p in sys.argv[1:5]] + [sys.argv[5]]
# Versions that users of mimalloc ask for, in the forms that find_package knows.
MET = ["", "1.8", "2.1", "2.2.4", "3", "3.0", "3.4.3 EXACT", "1.0...3.9", "2...<4"]
HEADERS = {"mimalloc.h", "mimalloc-override.h", "mimalloc-new-delete.h", "mimalloc-profile.h", "mimalloc-stats.h", "mimalloc/base.h", "mimalloc/stl.h"}
NOT_MET = ["3.5", "4", "3.4.2 EXACT", "1.0...2.9"]


def run(*command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
    return done.returncode, done.stdout


def must(*command, **kwargs):
    status, output = run(*command, **kwargs)
    if status != 0:
        sys.exit("%s: status %d\n%s" % (" ".join(command), status, output))
    return output


def needs_only_itself(program):
    return "lib%s.so.3" % STEM in must("readelf", "-d", program)


def check_program(program, shared):
    assert must(program) == "ours\n", program
    assert needs_only_itself(program) == shared, "%s: is lib%s.so.3 needed? %s" % (program, STEM, not shared)


def check_cmake(work, prefix, source):
    build = os.path.join(work, "build")

    # In one folder, since CMake looks at the compilers anew in each; what was found of the package is forgotten.
    def configure(request):
        return run("cmake", "-S", source, "-B", build, "-U", STEM + "_DIR", "-DPACKAGE=" + STEM, "-DREQUEST=" + request.replace(" ", ";"), "-DCMAKE_PREFIX_PATH=" + prefix,
                   "-DCMAKE_FIND_PACKAGE_NO_PACKAGE_REGISTRY=ON")

    for request in NOT_MET:
        status, output = configure(request)
        assert status != 0 and "3.4.3" in output, "a request for %s was met:\n%s" % (request, output)
    for request in MET:
        status, output = configure(request)
        assert status == 0, "a request for %s was not met:\n%s" % (request, output)
        assert re.search(r"^-- major 3$", output, re.M), output
    must("cmake", "--build", build)
    for name in ["shared", "static", "object", "cxx"]:
        check_program(os.path.join(build, name), name in ("shared", "cxx"))


def check_headers(prefix):
    """Each installed header is there, and compiles by itself, with nothing else of ours in sight."""
    folder = os.path.join(prefix, "include")
    found = sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)
    assert set(found) >= HEADERS, found
    for name in found:
        for words in (["gcc", "-std=c11", "-xc"], ["g++", "-std=c++11", "-xc++"], ["g++", "-std=c++20", "-xc++"]):
            must(*words, "-Wall", "-Wextra", "-Wno-unused", "-Werror", "-fsyntax-only", "-I", folder, os.path.join(folder, name))


def check_pkg_config(work, prefix, source):
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(prefix, "lib", "pkgconfig"))

    def ask(*words):
        return must("pkg-config", *words, STEM, env=environment).strip()

    assert ask("--modversion") == "3.4.3"
    assert ask("--variable=libdir") == os.path.join(prefix, "lib")
    assert run("pkg-config", "--atleast-version=4", STEM, env=environment)[0] != 0
    here = os.path.join(work, "make")
    shutil.copytree(source, here)
    must("make", "-C", here, "PACKAGE=" + STEM, env=environment)
    check_program(os.path.join(here, "shared"), True)
    check_program(os.path.join(here, "static"), False)


def check_refusals(work, install):
    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    for words, message in [
        (["--artifacts", empty], "holds no library"),
        (["--variant", "mimalloc-none"], "mimalloc-none was not built"),
        (["--prefix", "relative"], "is no absolute path"),
    ]:
        status, output = run(*install, *words)
        assert status == 1 and message in output and len(output.splitlines()) == 1, output


def main():
    work = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    source = os.path.dirname(os.path.realpath(SOURCE))
    prefix = os.path.join(work, "prefix")
    install = [sys.executable, "-B", os.path.realpath(INSTALLER), "--artifacts", os.path.dirname(os.path.realpath(SHARED)),
               "--headers", os.path.dirname(os.path.realpath(HEADER)), "--prefix", prefix, "--variant", STEM]
    check_refusals(work, install)
    must(*install)
    assert not os.access(os.path.join(prefix, "lib", "lib%s.a" % STEM), os.X_OK)
    check_headers(prefix)
    check_pkg_config(work, prefix, source)
    # Over itself, as an upgrade does, and as a package that is unpacked elsewhere.
    must(*install)
    staged = os.path.join(work, "staged")
    must(*install, "--destdir", staged)
    moved = os.path.join(work, "moved")
    os.rename(staged + prefix, moved)
    shutil.rmtree(prefix)
    check_cmake(work, moved, source)
    os.unlink(os.path.join(moved, "lib", "lib%s.a" % STEM))
    status, output = run("cmake", "-S", source, "-B", os.path.join(work, "broken"), "-DPACKAGE=" + STEM, "-DREQUEST=", "-DCMAKE_PREFIX_PATH=" + moved)
    assert status != 0 and "lib%s.a is missing" % STEM in " ".join(output.split()), output


main()
