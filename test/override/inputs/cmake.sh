# Owns: the work of the cmake row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
mkdir project
cat > project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(tiny C CXX)
enable_testing()
set(parts "")
foreach(i RANGE 1 12)
  file(WRITE ${CMAKE_BINARY_DIR}/part${i}.c "int part${i}(int x) { return x + ${i}; }\n")
  list(APPEND parts ${CMAKE_BINARY_DIR}/part${i}.c)
endforeach()
add_library(parts STATIC ${parts})
add_library(shared SHARED shared.cc)
add_executable(main main.c)
target_link_libraries(main PRIVATE parts shared)
set(text "")
foreach(i RANGE 1 3000)
  string(APPEND text "line ${i};")
endforeach()
list(LENGTH text count)
string(SHA256 hash "${text}")
message(STATUS "count ${count} hash ${hash}")
string(REGEX MATCHALL "line [0-9]+5;" fives "${text}")
list(LENGTH fives number)
message(STATUS "fives ${number}")
file(WRITE ${CMAKE_BINARY_DIR}/out.json "{\"a\": [1, 2, {\"b\": \"text\"}]}")
file(READ ${CMAKE_BINARY_DIR}/out.json json)
string(JSON value GET "${json}" a 2 b)
message(STATUS "json ${value}")
add_test(NAME runs COMMAND main)
CMAKE
cat > project/shared.cc <<< '#include <string>
extern "C" int shared(int x) { return (int)std::to_string(x).size(); }'
{ for i in $(seq 1 12); do echo "int part$i(int);"; done
  echo '#include <stdio.h>'
  echo 'int shared(int); int main(void) { int x = 0;'
  for i in $(seq 1 12); do echo "x = part$i(x);"; done
  echo 'printf("main %d %d\n", x, shared(x)); return 0; }'; } > project/main.c
cmake -S project -B build -DCMAKE_BUILD_TYPE=Release 2>&1 | grep -E 'count|fives|json|Generating done|Error'
make -C build --no-print-directory -j2 2>&1 | grep -E 'Built target|rror' | sed 's/^\[ *[0-9]*%\] //' | sort
build/main
(cd build && ctest 2>&1 | grep -E 'tests passed')
make -C build --no-print-directory 2>&1 | grep -c 'Built target'
cat > many.mk <<'MAKE'
numbers := $(shell seq 1 1500)
all: $(addprefix target-,$(numbers))
	@echo "all of $(words $^)"
target-%:
	@:
$(foreach n,$(numbers),$(eval value-$(n) := $(n)$(n)))
$(info sum $(words $(foreach n,$(numbers),$(value-$(n)))))
MAKE
make -f many.mk -j2
echo "cmake done"
