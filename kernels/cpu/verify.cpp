#include "kernels/cpu/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/oracle.hpp"

namespace rowtune::cpu {
namespace {

std::vector<double> as_doubles(Dtype dtype, const void* row, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = load_element(dtype, row, i);
  return values;
}

/// What one thread found in its rows.
struct Findings {
  std::int64_t wrong = 0;
  double max_ulp = 0;
  bool kinds_differ = false;
  std::int64_t row = std::numeric_limits<std::int64_t>::max(), col = 0;  ///< of the first wrong element
  double got = 0, expected = 0, ulp = 0;
  const char* tensor = "";

  void note(bool right, double error_ulp, const char* where, std::int64_t r, std::int64_t c, double value,
            double reference) {
    if (std::isnan(error_ulp))
      kinds_differ = true;
    else
      max_ulp = std::max(max_ulp, error_ulp);
    if (right) return;
    ++wrong;
    if (r < row || (r == row && c < col)) {
      row = r, col = c, got = value, expected = reference, ulp = error_ulp, tensor = where;
    }
  }

  void add(const Findings& other) {
    max_ulp = std::max(max_ulp, other.max_ulp);
    kinds_differ = kinds_differ || other.kinds_differ;
    const std::int64_t all = wrong + other.wrong;
    if (other.row < row)
      *this = [&, most = max_ulp, kinds = kinds_differ] {
        Findings f = other;
        f.max_ulp = most;
        f.kinds_differ = kinds;
        return f;
      }();
    wrong = all;
  }
};

std::string guards_of(Slot& slot) {
  const std::pair<const char*, const GuardedMatrix*> all[] = {
      {"input", &slot.input},
      {"residual", slot.residual ? &*slot.residual : nullptr},
      {"output", slot.output ? &*slot.output : nullptr},
      {"new residual", slot.new_residual ? &*slot.new_residual : nullptr},
      {"weight", slot.weight ? &*slot.weight : nullptr},
      {"bias", slot.bias ? &*slot.bias : nullptr}};
  for (const auto& [name, matrix] : all)
    if (matrix)
      if (const std::string damage = matrix->damage(); !damage.empty())
        return fmt::format("{}: {} of the tensor", name, damage);
  return "";
}

}  // namespace

Expectation::Expectation(const Workload& workload, const Slot& slot, int threads)
    : workload_(workload), threads_(threads) {
  const std::int64_t rows = workload.shape.rows, cols = workload.shape.cols;
  const bool fused = workload.op == Operation::fused_add_rmsnorm;
  const std::int64_t results = output_form(workload).shape.cols;  // elements of a row of the output
  output_.resize(static_cast<std::size_t>(rows * results));
  if (fused) new_residual_.resize(output_.size());
  spread_.resize(static_cast<std::size_t>(rows));
  if (slot.weight) weight_ = as_doubles(workload.dtype, slot.weight->data(), cols);
  std::vector<double> bias;
  if (slot.bias) bias = as_doubles(workload.dtype, slot.bias->data(), cols);
#pragma omp parallel for num_threads(threads_)
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto input = as_doubles(workload_.dtype, slot.input.row(r), cols);
    const auto residual = fused ? as_doubles(workload_.dtype, slot.residual->row(r), cols) : std::vector<double>();
    const RowReference reference = reference_row(workload_, input, residual, weight_.empty() ? nullptr : weight_.data(),
                                                 bias.empty() ? nullptr : bias.data());
    std::copy(reference.output.begin(), reference.output.end(), output_.begin() + r * results);
    if (fused)
      std::copy(reference.new_residual.begin(), reference.new_residual.end(), new_residual_.begin() + r * cols);
    spread_[static_cast<std::size_t>(r)] = reference.spread;
  }
}

Verification Expectation::check(Slot& slot, const Slot& inputs, const Config& config) const {
  const std::int64_t rows = workload_.shape.rows, cols = workload_.shape.cols;
  const bool fused = workload_.op == Operation::fused_add_rmsnorm, in_place = workload_.options.in_place;
  const double h = summation_depth(workload_, config);
  Workload exact = workload_;
  exact.op = Operation::copy;
  const std::int64_t results = cols == 0 ? 0 : output_form(workload_).shape.cols;
  Findings findings;
  std::int64_t input_changed = -1;
#pragma omp parallel num_threads(threads_)
  {
    Findings mine;
#pragma omp for
    for (std::int64_t r = 0; r < rows; ++r) {
      double ulp = 0;
      for (std::int64_t c = 0; c < results; ++c) {
        const auto i = static_cast<std::size_t>(r * results + c);
        const double got = load_output(workload_, slot.written().row(r), c);
        const double scale = weight_.empty() ? 1 : weight_[static_cast<std::size_t>(c)];
        const bool right =
            check_output(workload_, c, got, output_[i], spread_[static_cast<std::size_t>(r)], scale, h, &ulp);
        mine.note(right, ulp, "output", r, c, got, output_[i]);
        if (!fused) continue;
        const double sum = load_element(workload_.dtype, slot.written_residual()->row(r), c);
        const bool sum_right = check_element(exact, sum, new_residual_[i], 0, 1, 0, &ulp);
        mine.note(sum_right, ulp, "new residual", r, c, sum, new_residual_[i]);
      }
      if (in_place) continue;
      const auto bytes = static_cast<std::size_t>(cols * size_of(workload_.dtype));
      if (std::memcmp(slot.input.row(r), inputs.input.row(r), bytes) != 0 ||
          (fused && std::memcmp(slot.residual->row(r), inputs.residual->row(r), bytes) != 0)) {
#pragma omp critical
        input_changed = r;
      }
    }
#pragma omp critical
    findings.add(mine);
  }
  Verification v;
  v.max_error_ulp = findings.kinds_differ ? std::numeric_limits<double>::quiet_NaN() : findings.max_ulp;
  if (findings.wrong > 0) {
    v.what = fmt::format(
        "{} of {} elements are wrong; the first is row {}, column {} of {}: {} where {} is right, {:.3g} ulp off at a "
        "summation depth of {}",
        findings.wrong, rows * results * (fused ? 2 : 1), findings.row, findings.col, findings.tensor, findings.got,
        findings.expected, findings.ulp, h);
  } else if (const std::string damage = guards_of(slot); !damage.empty()) {
    v.what = damage;
  } else if (input_changed >= 0) {
    v.what = fmt::format("row {} of an input was changed although the operation does not work in place", input_changed);
  } else {
    v.right = true;
  }
  return v;
}

double summation_depth(const Workload& workload, const Config& config) {
  const int lanes = simd_lanes(), vectors = std::max(1, config.vector_width());
  const int splits = std::max(1, config.split_count());
  const double slice = std::ceil(static_cast<double>(workload.shape.cols) / splits);
  // Each lane of each accumulator adds its share; up to V single vectors and a rest go to the first accumulator; then
  // trees over accumulators and lanes, and a chain over the splits. Online sums round twice a step.
  const double chain = std::ceil(slice / (lanes * vectors)) + vectors + 1 + std::log2(lanes * vectors) + splits;
  return config.algorithm == "online" ? 2 * chain + vectors : chain;
}

}  // namespace rowtune::cpu
