# Owns: the work of the C++ compilers row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
compiler=$1
cat > work.cc <<'CODE'
#include <algorithm>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

template <int N> struct Deep : Deep<N - 1> { std::map<int, std::vector<std::string>> field; };
template <> struct Deep<0> { };
template <int... I> int sum(std::integer_sequence<int, I...>) { return (I + ...); }
struct alignas(128) Wide { double values[16]; };

static std::size_t work(unsigned seed) {
  std::unordered_map<std::string, std::unique_ptr<std::vector<int>>> table;
  for (unsigned i = 0; i < 40000; i++) {
    seed = seed * 1664525u + 1013904223u;
    auto& slot = table["key" + std::to_string(seed % 5000)];
    if (!slot || seed % 11 == 0) slot = std::make_unique<std::vector<int>>();
    slot->push_back(static_cast<int>(seed >> 8));
  }
  std::size_t total = 0;
  for (auto& entry : table) total += entry.second->size() * entry.first.size();
  return total;
}

int main() {
  auto deep = std::make_unique<Deep<120>>();
  std::cout << "sum " << sum(std::make_integer_sequence<int, 250>{}) << ' ' << (sizeof *deep > 0) << '\n';
  std::vector<std::future<std::size_t>> futures;
  for (unsigned i = 0; i < 4; i++) futures.push_back(std::async(std::launch::async, work, i));
  for (auto& future : futures) std::cout << "future " << future.get() << '\n';
  std::vector<std::unique_ptr<Wide>> wide;
  for (int i = 0; i < 1000; i++) {
    wide.push_back(std::make_unique<Wide>());
    if (reinterpret_cast<std::uintptr_t>(wide.back().get()) % 128 != 0) return 1;
  }
  std::string text;
  for (int i = 0; i < 300; i++) text += "name" + std::to_string(i) + "=value" + std::to_string(i * i) + ";";
  std::regex pattern("name(\\d+)=value(\\d+);");
  std::cout << "regex " << std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()) << '\n';
  try { throw std::runtime_error("thrown"); } catch (const std::exception& e) { std::cout << e.what() << '\n'; }
  try { std::vector<char> huge(std::vector<char>().max_size()); } catch (const std::bad_alloc&) { std::cout << "bad_alloc\n"; }
  std::ostringstream stream;
  for (int i = 0; i < 20000; i++) stream << i << ',';
  std::cout << "stream " << stream.str().size() << '\n';
}
CODE
"$compiler" -std=c++17 -O1 -pthread -c work.cc -o work.o
sha256sum work.o
"$compiler" work.o -pthread -o work
./work
"$compiler" -std=c++17 -O0 -E work.cc | wc -l
echo 'int main() { std::vector<int> v; return v; }' > bad.cc
"$compiler" -std=c++17 -include vector bad.cc 2>&1 | sed -n 1,5p || true
echo "$(basename "$compiler") done"
