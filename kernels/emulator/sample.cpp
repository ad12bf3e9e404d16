#include "kernels/emulator/sample.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "kernels/cuda/plan.hpp"
#include "kernels/space.hpp"

namespace rowtune::emulator {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::size_t below(std::size_t n) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>((state_ * 0x2545f4914f6cdd1dULL) >> 33) % n;
  }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

/// Values that no space declares and every kernel must take.
std::vector<int> values_of(const Axis& axis) {
  std::vector<int> values = axis.values;
  const auto also = [&](std::initializer_list<int> more) { values.insert(values.end(), more); };
  if (axis.letter == 'b') also({32, 64, 96, 128});
  if (axis.letter == 'u') also({1, 2, 3});
  if (axis.letter == 's' && values.size() > 1) also({2, 3, 5});
  if (axis.letter == 'm') values = {0};  // changes registers, not results
  return values;
}

/// Nothing when the values drawn are not legal together, or too many threads at once.
std::optional<Config> random_config(Random& random, const Algorithm& algorithm, const Workload& w,
                                    const DeviceInfo& device, int threads_at_once) {
  Config config{algorithm.name, {}};
  for (const Axis& axis : algorithm.axes(w, device)) config.axes.push_back({axis.letter, random.of(values_of(axis))});
  if (!is_legal(w, device, config) || config.split_count() * config.block_size() > threads_at_once) return std::nullopt;
  return config;
}

std::optional<SampledCase> random_case(Random& random, const DeviceInfo& device, const SampleLimits& limits) {
  const Algorithm& algorithm = random.of(algorithms_of(DeviceKind::cuda));
  SampledCase c;
  Workload& w = c.workload;
  w = Workload::of(random.of(algorithm.operations), random.of(tensor_dtypes()), Shape::of(5, random.of(hard_cols())));
  if (is_norm(w.op)) w.options.weight = random.below(3) > 0;
  if (w.op == Operation::layernorm) w.options.bias = random.below(2) > 0;
  const int v = cuda::widest_vector(w.dtype);
  // Aligned rows are as common as others, or they would hardly occur.
  if (random.below(2) == 0) w.shape.ld = w.shape.cols = (w.shape.cols + v - 1) / v * v;
  if (random.below(4) == 0) w.shape.ld += static_cast<std::int64_t>(random.below(2) == 0 ? 1 : v);
  if (random.below(4) == 0) w.shape.off = static_cast<std::int64_t>(random.below(2) == 0 ? 1 : v);

  const auto config = random_config(random, algorithm, w, device, limits.threads_at_once);
  if (!config) return std::nullopt;
  c.config = *config;
  return c;
}

using Factor = std::pair<std::string, std::int64_t>;

std::vector<Factor> factors_of(const SampledCase& c) {
  const Workload& w = c.workload;
  const auto layout = cuda::row_layout(w, c.config.vector_width());
  std::vector<Factor> factors{{"op", static_cast<int>(w.op)},
                              {"dtype", static_cast<int>(w.dtype)},
                              {"algorithm " + c.config.algorithm, 0},
                              {"ragged", layout.ragged},
                              {"affine", int(w.options.weight) + 2 * int(w.options.bias)}};
  if (c.config.algorithm != "copy")
    factors.emplace_back("vectors", std::min<std::int64_t>(4, cuda::vectors_per_thread(w, c.config)));
  for (const AxisValue& axis : c.config.axes) {
    int value = axis.value;
    if (axis.letter == 'g') value = value > 0;
    factors.emplace_back(std::string("axis ") + axis.letter, value);
  }
  return factors;
}

/// Rows of more than 32 parts, of unequal length: a lane of the warp that merges them has several of its own. They
/// would hardly occur among the random cases.
std::vector<SampledCase> cases_of_many_parts() {
  const auto layernorm = [](Dtype dtype, std::int64_t cols) {
    return Workload::of(Operation::layernorm, dtype, Shape::of(5, cols));
  };
  return {{layernorm(Dtype::f32, 2047), split_config_name("two_launches.b32.r1.v1.s40.u1.w3")},
          {layernorm(Dtype::f16, 4097), split_config_name("split.b32.r1.v1.s70.p0.h0.e0.w3")},
          {Workload::of(Operation::softmax, Dtype::f32, Shape::of(5, 2047)),
           split_config_name("split_reread.b32.r1.v1.s40.u1.h0.x1")}};
}

}  // namespace

bool is_legal(const Workload& w, const DeviceInfo& device, const Config& config) {
  const Algorithm& algorithm = algorithm_named(DeviceKind::cuda, config.algorithm);
  return std::all_of(algorithm.constraints.begin(), algorithm.constraints.end(), [&](const Constraint& c) {
    return c.kind != Constraint::Kind::must || c.holds(w, device, config);
  });
}

std::vector<SampledCase> legal_cases(const Workload& w, const DeviceInfo& device, int each) {
  std::vector<SampledCase> cases;
  std::uint64_t seed = 7;
  for (const char c : to_string(w)) seed = seed * 31 + static_cast<unsigned char>(c);
  Random random(seed);
  for (const Algorithm& algorithm : algorithms_of(DeviceKind::cuda)) {
    if (std::find(algorithm.operations.begin(), algorithm.operations.end(), w.op) == algorithm.operations.end())
      continue;
    int found = 0;
    for (int tries = 0; tries < 2000 && found < each; ++tries) {
      const auto config = random_config(random, algorithm, w, device, 1024);
      if (!config) continue;
      cases.push_back({w, *config});
      ++found;
    }
  }
  return cases;
}

const std::vector<std::int64_t>& hard_cols() {
  static const std::vector<std::int64_t> cols{1,    2,    3,    7,    16,   17,   31,   32,   33,   64,   65,
                                              127,  128,  129,  255,  257,  500,  512,  769,  1000, 1023, 1024,
                                              1025, 1152, 1536, 2047, 2048, 3584, 4095, 4096, 4097, 8192};
  return cols;
}

Sample covering_sample(const DeviceInfo& device, const SampleLimits& limits) {
  Random random(limits.seed);
  const std::vector<SampledCase> given = cases_of_many_parts();
  std::vector<SampledCase> pool;
  std::vector<std::vector<int>> pairs_of;
  std::map<Factor, int> factor_ids;
  std::map<std::pair<int, int>, int> pair_ids;
  while (pool.size() < limits.pool) {
    auto c = pool.size() < given.size() ? given[pool.size()] : random_case(random, device, limits);
    if (!c) continue;
    std::vector<int> ids;
    for (const Factor& f : factors_of(*c))
      ids.push_back(factor_ids.try_emplace(f, int(factor_ids.size())).first->second);
    std::vector<int> pairs;
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        pairs.push_back(
            pair_ids.try_emplace(std::minmax(ids[i], ids[j]), static_cast<int>(pair_ids.size())).first->second);
    // Every algorithm in every operation and dtype besides: a "pair" of its own.
    const int triple = (static_cast<int>(c->workload.op) * 8 + static_cast<int>(c->workload.dtype)) * 1000 + ids[2];
    pairs.push_back(pair_ids.try_emplace({-1, triple}, static_cast<int>(pair_ids.size())).first->second);
    pool.push_back(std::move(*c));
    pairs_of.push_back(std::move(pairs));
  }

  Sample sample;
  sample.pairs = pair_ids.size();
  std::vector<int> wanted(pair_ids.size(), limits.times);
  std::vector<std::size_t> gain(pool.size(), limits.pool);  // never too low: it only shrinks as pairs get covered
  const auto take = [&](std::size_t i) {
    for (int p : pairs_of[i]) {
      int& left = wanted[static_cast<std::size_t>(p)];
      if (left == limits.times) ++sample.covered;
      if (left > 0) --left;
    }
    sample.cases.push_back(pool[i]);
    pairs_of[i].clear();  // once is enough
    gain[i] = 0;
  };
  for (std::size_t i = 0; i < given.size(); ++i) take(i);
  while (sample.cases.size() < limits.most) {
    std::size_t best = 0, best_gain = 0;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (gain[i] <= best_gain) continue;
      gain[i] = static_cast<std::size_t>(std::count_if(pairs_of[i].begin(), pairs_of[i].end(),
                                                       [&](int p) { return wanted[static_cast<std::size_t>(p)] > 0; }));
      if (gain[i] > best_gain) best = i, best_gain = gain[i];
    }
    if (best_gain == 0) break;
    take(best);
  }
  return sample;
}

}  // namespace rowtune::emulator
