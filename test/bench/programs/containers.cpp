// Owns: the work of the g++ row: a translation unit that instantiates many templates of the standard library.
// May include: the C++ standard library.
// Called by: programs.py.
// Invariants: compiled, never run.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

template <int N>
struct Tag {
  int value = N;
  std::string name = "tag";
  bool operator<(const Tag& other) const { return value < other.value; }
  bool operator==(const Tag& other) const { return value == other.value; }
};

template <int N>
struct TagHash {
  size_t operator()(const Tag<N>& tag) const { return std::hash<std::string>()(tag.name) + N; }
};

template <int N>
int use_containers(int seed) {
  std::map<Tag<N>, std::vector<std::tuple<int, std::string, double>>> ordered;
  std::unordered_map<Tag<N>, std::shared_ptr<Tag<N>>, TagHash<N>> hashed;
  std::vector<std::pair<std::string, Tag<N>>> mixed;
  for (int i = 0; i < seed; i++) {
    Tag<N> tag;
    tag.value = i * N;
    ordered[tag].emplace_back(i, tag.name, 0.5);
    hashed[tag] = std::make_shared<Tag<N>>(tag);
    mixed.emplace_back(tag.name, tag);
  }
  std::sort(mixed.begin(), mixed.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  int sum = 0;
  for (const auto& [key, list] : ordered) {
    for (const auto& item : list) sum += std::get<0>(item) + key.value;
  }
  for (const auto& item : mixed) sum += static_cast<int>(item.first.size());
  return sum + static_cast<int>(hashed.size());
}

template <int... Ns>
int use_all(int seed, std::integer_sequence<int, Ns...>) { return (use_containers<Ns>(seed) + ...); }

int run_all(int seed) { return use_all(seed, std::make_integer_sequence<int, 1>()); }
