#include "stability/kernel_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "kernels/errors.hpp"
#include "kernels/oracle.hpp"
#include "kernels/space.hpp"
#include "stability/formats.hpp"
#include "stability/measure.hpp"
#include "stability/recipes.hpp"

namespace rowtune::stability {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Elements in the layout of a workload: offset, then rows with their stride.
class HostMatrix {
 public:
  HostMatrix(const Workload& w, std::int64_t rows)
      : dtype_(w.dtype),
        ld_(w.shape.ld),
        off_(w.shape.off),
        bytes_(static_cast<std::size_t>((w.shape.off + rows * w.shape.ld) * size_of(w.dtype))) {}
  void set_row(std::int64_t row, const std::vector<double>& values) {
    for (std::size_t c = 0; c < values.size(); ++c)
      store_element(dtype_, bytes_.data(), off_ + row * ld_ + static_cast<std::int64_t>(c), values[c]);
  }
  std::byte* data() { return bytes_.data(); }

 private:
  Dtype dtype_;
  std::int64_t ld_, off_;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> vector_of(Dtype dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(dtype, bytes.data(), static_cast<std::int64_t>(i), values[i]);
  return bytes;
}

/// The inputs of a workload in memory, and what they must become.
struct Problem {
  Workload workload;  ///< as many rows as inputs
  std::vector<KernelInput> inputs;
  HostMatrix input, residual, output;
  std::vector<std::byte> weight, bias;
  OutputReference reference;

  Problem(const Workload& w, std::vector<KernelInput> rows)
      : workload(with_rows(w, static_cast<std::int64_t>(rows.size()))),
        inputs(std::move(rows)),
        input(matrix(workload, inputs, false)),
        residual(matrix(workload, inputs, true)),
        output(workload, workload.shape.rows),
        weight(vector(w, w.options.weight, 1, 0.1, 7)),
        bias(vector(w, w.options.bias, 0, 0.1, 8)),
        reference(workload, input.data(), residual.data(), data(weight), data(bias)) {}

  HostTensors tensors() { return {input.data(), residual.data(), data(weight), data(bias), output.data()}; }

 private:
  static Workload with_rows(Workload w, std::int64_t rows) {
    w.shape.rows = rows;
    return w;
  }
  static HostMatrix matrix(const Workload& w, const std::vector<KernelInput>& inputs, bool residual) {
    HostMatrix m(w, static_cast<std::int64_t>(inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      m.set_row(static_cast<std::int64_t>(i), residual ? inputs[i].residual : inputs[i].values);
    return m;
  }
  static std::vector<std::byte> vector(const Workload& w, bool there, double mean, double sd, std::uint64_t seed) {
    if (!there) return {};
    std::vector<double> values;
    Random random(seed);
    for (std::int64_t c = 0; c < w.shape.cols; ++c) values.push_back(round_to(w.dtype, mean + sd * random.normal()));
    return vector_of(w.dtype, values);
  }
  static const std::byte* data(const std::vector<std::byte>& bytes) { return bytes.empty() ? nullptr : bytes.data(); }
};

/// Workloads that differ only in their rows are one group: a config computes a row the same way in all of them.
using GroupKey = std::tuple<Operation, Dtype, std::int64_t, std::int64_t, std::int64_t, std::string>;

GroupKey group_of(const Workload& w) {
  return {w.op, w.dtype, w.shape.cols, w.shape.ld, w.shape.off, to_string(w.options)};
}

db::MeasurementKey key_of(const db::BestRow& row) {
  db::MeasurementKey key;
  key.device_model = row.device_model;
  key.device_limits = row.device_limits;
  key.toolchain = row.toolchain;
  key.source_fingerprint = row.source_fingerprint;
  key.protocol = row.protocol;
  key.workload = row.workload();
  key.config = row.config;
  return key;
}

std::optional<double> finite(double value) { return std::isnan(value) ? std::nullopt : std::optional<double>(value); }

/// The errors of one config, a record for each input.
std::vector<db::Accuracy> measure_config(Device& device, Problem& problem, const Config& config) {
  device.compute(problem.workload, config, problem.tensors());
  std::vector<db::Accuracy> records;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const ErrorTally t = problem.reference.errors_of_row(problem.output.data(), static_cast<std::int64_t>(i));
    db::Accuracy a;
    a.input = problem.inputs[i].name;
    a.elements = t.count;
    a.max_error_ulp = finite(t.max_ulp);
    a.mean_error_ulp = t.all_right_kind() ? finite(t.mean_ulp()) : std::nullopt;
    if (t.has_relative()) a.max_rel_error = finite(t.max_relative);
    a.nan_count = t.nan_count;
    a.inf_count = t.inf_count;
    a.false_zero_count = t.false_zero_count;
    records.push_back(std::move(a));
  }
  return records;
}

}  // namespace

std::vector<KernelInput> kernel_inputs(const Workload& w) {
  const std::int64_t n = w.shape.cols;
  std::vector<KernelInput> inputs;
  struct Manner {
    double mean = 0, scale = 1;
    Arrangement arrangement = Arrangement::shuffled;
    Distribution distribution = Distribution::normal;
  };
  const auto add = [&](std::string name, const Manner& manner) {
    Recipe recipe;
    recipe.distribution = manner.distribution;
    recipe.arrangement = manner.arrangement;
    recipe.mean = manner.mean;
    recipe.scale = manner.scale;
    recipe.n = n;
    recipe.seed = 100 + inputs.size();
    KernelInput input{std::move(name), make_row(recipe, w.dtype), {}};
    if (w.op == Operation::fused_add_rmsnorm) {
      Recipe residual;
      residual.n = n;
      residual.seed = 200 + inputs.size();
      input.residual = make_row(residual, w.dtype);
    }
    inputs.push_back(std::move(input));
  };
  constexpr auto shuffled = Arrangement::shuffled;
  add("normal", {});
  if (is_norm(w.op)) {
    add("mean/sd 100", {100});
    add("activations", {0, 1, shuffled, Distribution::activations});
    add("lognormal", {0, 1, shuffled, Distribution::lognormal});
    add("ascending", {1, 1, Arrangement::ascending});
    const double scale = w.dtype == Dtype::f16 ? 0.1 : 1;  // an outlier of 1e5 does not fit f16
    add("outlier first", {0, scale, Arrangement::outlier_first});
    add("outlier last", {0, scale, Arrangement::outlier_last});
  } else {
    add("sd 10", {0, 10});
    add("sd 10, all below -88", {-30, 10});
    add("ascending", {0, 10, Arrangement::ascending});
    add("descending", {0, 10, Arrangement::descending});
    add("constant", {0, 1, shuffled, Distribution::constant});
    add("half masked", {0, 3});
    for (std::size_t c = static_cast<std::size_t>(n + 1) / 2; c < static_cast<std::size_t>(n); ++c)
      inputs.back().values[c] = -inf;
  }
  return inputs;
}

KernelErrorsCounts measure_kernels(Device& device, db::Database& database, const KernelErrorsRequest& request,
                                   const std::function<void(std::size_t, std::size_t, const std::string&)>& progress) {
  KernelErrorsCounts counts;
  const DeviceInfo& info = device.info();
  db::BestQuery query = request.query;
  query.device_model = info.model;
  query.device_limits = info.limits;

  std::set<std::pair<std::string, std::string>> present;  // workload, config
  if (!request.again)
    for (const db::AccuracyRow& row : database.accuracy(query))
      present.emplace(to_string(row.accuracy.key.workload), row.accuracy.key.config);

  std::map<GroupKey, std::map<std::string, std::vector<db::MeasurementKey>>> groups;
  std::size_t total = 0;
  for (const db::BestRow& row : database.leaderboard(query)) {
    const Workload w = row.workload();
    if (w.op == Operation::copy || gives_row_results(w.op) || w.shape.cols == 0 || row.status != to_string(Outcome::ok))
      continue;
    if (row.toolchain != info.toolchain || row.source_fingerprint != device.source_fingerprint(w.op)) {
      ++counts.outdated;
      continue;
    }
    if (present.contains({to_string(w), row.config})) {
      ++counts.present;
      continue;
    }
    auto& keys = groups[group_of(w)][row.config];
    total += keys.empty();
    keys.push_back(key_of(row));
  }

  std::size_t done = 0;
  for (const auto& [group, configs] : groups) {
    const Workload& first = configs.begin()->second.front().workload;
    std::vector<KernelInput> inputs = kernel_inputs(first);
    const std::size_t fitting = static_cast<std::size_t>(
        std::max<std::uint64_t>(1, request.most_elements / static_cast<std::uint64_t>(first.shape.cols)));
    inputs.resize(std::min(inputs.size(), fitting));
    Problem problem(first, std::move(inputs));
    std::vector<db::Accuracy> records;
    for (const auto& [name, keys] : configs) {
      progress(++done, total,
               fmt::format("{} {} x{} {}", to_string(first.op), to_string(first.dtype), first.shape.cols, name));
      try {
        for (const db::Accuracy& of_input : measure_config(device, problem, parse_config(name, first, info)))
          for (const db::MeasurementKey& key : keys) {
            records.push_back(of_input);
            records.back().key = key;
          }
        ++counts.configs;
      } catch (const ConfigFailure& failure) {
        ++counts.failed;
        counts.failures.push_back(fmt::format("{} {}: {}", to_string(first), name, failure.what()));
        if (failure.outcome == Outcome::crash) throw;  // the device is lost
      }
    }
    database.record_accuracy(records);
  }
  return counts;
}

Table kernel_errors_table(const std::vector<db::AccuracyRow>& rows) {
  struct Extremes {
    std::set<std::string> configs;
    double least = inf, most = 0, mean = 0, other = 0;
    std::string most_config, other_config;
    std::int64_t wrong_kind = 0;
  };
  std::map<std::tuple<std::string, std::string, std::int64_t, std::string>, Extremes> lines;
  for (const db::AccuracyRow& row : rows) {
    const db::Accuracy& a = row.accuracy;
    const Workload& w = a.key.workload;
    Extremes& line = lines[{to_string(w.op), to_string(w.dtype), w.shape.cols, a.input}];
    const double ulp = a.max_error_ulp.value_or(inf);
    if (!row.eligible) {
      if (ulp > line.other || line.other_config.empty()) line.other = ulp, line.other_config = a.key.config;
      continue;
    }
    line.configs.insert(a.key.config);
    line.wrong_kind += !a.max_error_ulp.has_value();
    line.least = std::min(line.least, ulp);
    line.mean = std::max(line.mean, a.mean_error_ulp.value_or(inf));
    if (ulp > line.most || line.most_config.empty()) line.most = ulp, line.most_config = a.key.config;
  }
  Table table;
  table.columns = {"op",
                   "dtype",
                   "cols",
                   "input",
                   "configs",
                   "max_ulp",
                   "worst_mean",
                   "least_max_ulp",
                   "largest_by",
                   "not_eligible_max_ulp",
                   "not_eligible_by"};
  const auto number = [](double v) { return std::isinf(v) ? std::string("wrong kind") : fmt::format("{:.3g}", v); };
  for (const auto& [key, line] : lines) {
    const bool any = !line.configs.empty(), other = !line.other_config.empty();
    table.rows.push_back({std::get<0>(key), std::get<1>(key), fmt::format("{}", std::get<2>(key)), std::get<3>(key),
                          fmt::format("{}", line.configs.size()), any ? number(line.most) : "",
                          any ? number(line.mean) : "", any ? number(line.least) : "", line.most_config,
                          other ? number(line.other) : "", line.other_config});
  }
  return table;
}

}  // namespace rowtune::stability
