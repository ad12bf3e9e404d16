// The fewest kernels that serve all tuned workloads: a minimum set cover, exact where it is small.

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "tuner/dispatch_measured.hpp"

namespace rowtune {
namespace {

/// Kernels by number; each workload's candidates with their regret.
struct Cover {
  std::vector<DispatchKernel> kernels;
  std::vector<std::vector<std::pair<int, double>>> candidates;  ///< kernel, regret: of each workload, best first
};

/// Which workloads share a kernel: parts that have none in common are solved apart.
std::vector<std::vector<std::size_t>> connected_parts(const Cover& cover) {
  std::vector<std::size_t> part(cover.candidates.size());
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = i;
  const auto root = [&](std::size_t i) {
    while (part[i] != i) i = part[i];
    return i;
  };
  std::map<int, std::size_t> first_user;
  for (std::size_t w = 0; w < cover.candidates.size(); ++w)
    for (const auto& [kernel, regret] : cover.candidates[w])
      part[root(w)] = root(first_user.try_emplace(kernel, w).first->second);
  std::map<std::size_t, std::vector<std::size_t>> by_root;
  for (std::size_t w = 0; w < part.size(); ++w) by_root[root(w)].push_back(w);
  std::vector<std::vector<std::size_t>> parts;
  for (auto& [first, members] : by_root) parts.push_back(std::move(members));
  return parts;
}

/// Kernels taken, and the regret of all workloads of the part when each uses the best of them.
struct Solution {
  std::set<int> kernels;
  double regret = std::numeric_limits<double>::infinity();
  auto rank() const { return std::tuple(kernels.size(), regret, kernels); }
};

class Search {
 public:
  Search(const Cover& cover, const std::vector<std::size_t>& part, long budget)
      : cover_(cover), part_(part), left_(budget) {}

  Solution solve() {
    best_ = greedy();
    branch({});
    return best_;
  }

 private:
  const std::pair<int, double>* served(std::size_t w, const std::set<int>& taken) const {
    for (const auto& candidate : cover_.candidates[w])
      if (taken.contains(candidate.first)) return &candidate;
    return nullptr;
  }
  double regret_of(const std::set<int>& taken) const {
    double sum = 0;
    for (const auto w : part_) {
      const auto* by = served(w, taken);
      if (by == nullptr) return std::numeric_limits<double>::infinity();
      sum += by->second;
    }
    return sum;
  }
  Solution greedy() const {
    Solution s;
    while (true) {
      std::map<int, std::pair<int, double>> gains;  // workloads served, minus their regret
      for (const auto w : part_) {
        if (served(w, s.kernels) != nullptr) continue;
        for (const auto& [kernel, regret] : cover_.candidates[w]) {
          ++gains[kernel].first;
          gains[kernel].second -= regret;
        }
      }
      if (gains.empty()) break;
      s.kernels.insert(std::max_element(gains.begin(), gains.end(), [](const auto& a, const auto& b) {
                         return std::tuple(a.second, -a.first) < std::tuple(b.second, -b.first);
                       })->first);
    }
    s.regret = regret_of(s.kernels);
    return s;
  }
  /// Takes a kernel for the workload that has the least choice, in every way.
  void branch(const std::set<int>& taken) {
    if (--left_ < 0) return;
    std::size_t least = 0;
    bool open = false;
    for (const auto w : part_) {
      if (served(w, taken) != nullptr) continue;
      if (!open || cover_.candidates[w].size() < cover_.candidates[least].size()) least = w;
      open = true;
    }
    if (!open) {
      Solution s{taken, regret_of(taken)};
      if (s.rank() < best_.rank()) best_ = std::move(s);
      return;
    }
    if (taken.size() + 1 > best_.kernels.size()) return;
    for (const auto& [kernel, regret] : cover_.candidates[least]) {
      auto more = taken;
      more.insert(kernel);
      branch(more);
    }
  }

  const Cover& cover_;
  const std::vector<std::size_t>& part_;
  long left_;
  Solution best_;
};

}  // namespace

std::vector<std::size_t> fewest_kernels(const std::vector<std::vector<KernelChoice>>& candidates, long budget) {
  Cover cover;
  std::map<DispatchKernel, int> numbers;
  for (const auto& choices : candidates) {
    auto& own = cover.candidates.emplace_back();
    for (const auto& choice : choices) {
      const auto [at, added] = numbers.try_emplace(choice.kernel, static_cast<int>(cover.kernels.size()));
      if (added) cover.kernels.push_back(choice.kernel);
      own.emplace_back(at->second, choice.regret);
    }
    std::stable_sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  std::vector<std::size_t> picks(candidates.size(), 0);
  for (const auto& part : connected_parts(cover)) {
    std::vector<std::size_t> open;
    for (const auto w : part)
      if (!candidates[w].empty()) open.push_back(w);
    if (open.empty()) continue;
    const Solution solution = Search(cover, open, budget).solve();
    for (const auto w : open) {
      const auto& own = cover.candidates[w];
      const auto by = std::find_if(own.begin(), own.end(),
                                   [&](const auto& candidate) { return solution.kernels.contains(candidate.first); });
      const auto& kernel = cover.kernels[static_cast<std::size_t>(by->first)];
      picks[w] = static_cast<std::size_t>(std::find_if(candidates[w].begin(), candidates[w].end(),
                                                       [&](const auto& choice) { return choice.kernel == kernel; }) -
                                          candidates[w].begin());
    }
  }
  return picks;
}

}  // namespace rowtune
