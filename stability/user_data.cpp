#include "stability/user_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

/// The format whose digits count: of the arithmetic for a statistic, of the stored outputs else.
Dtype format_counted(const Result& r) { return r.op == "variance" ? r.arithmetic.type : r.dtype; }

std::string in_words(const Result& r) {
  if (r.nan_count + r.inf_count > 0 || (r.rel_error && std::isnan(*r.rel_error)))
    return r.op == "variance"
               ? fmt::format("variance {} where {:.4g} is right", r.value.value_or(0), r.reference.value_or(0))
               : fmt::format("{} NaN and {} infinite outputs", r.nan_count, r.inf_count);
  if (r.op == "variance")
    return fmt::format("variance {:.4g} where {:.4g} is right", r.value.value_or(0), r.reference.value_or(0));
  if (r.false_zero_count > 0) return fmt::format("{} outputs vanished to 0", r.false_zero_count);
  return fmt::format("relative error {:.2g}", r.rel_error.value_or(0));
}

/// One row while it is studied; `parts` are the results of its jobs, in their order.
struct RowFacts {
  MomentsReference moments;
  SoftmaxReference softmax;
  std::vector<std::vector<Result>> parts;
};

/// A piece of the work on a row that can run beside the others: even a single row keeps every core busy.
struct Job {
  Precision precision;
  std::vector<MomentsChoice> moments;
  std::vector<SoftmaxChoice> softmax;  ///< one of the two is empty
};

std::vector<Job> jobs_of(Dtype dtype, int lanes) {
  std::vector<Job> jobs;
  for (const Precision& p : all_precisions()) {
    if (p.dtype != dtype) continue;
    for (const MomentsChoice& choice : all_moments(lanes)) jobs.push_back({p, {choice}, {}});
    for (const SoftmaxMethod method :
         {SoftmaxMethod::unsafe, SoftmaxMethod::three_pass, SoftmaxMethod::online, SoftmaxMethod::split}) {
      jobs.push_back({p, {}, {}});
      for (const SoftmaxChoice& choice : all_softmax(lanes))
        if (choice.method == method) jobs.back().softmax.push_back(choice);
    }
  }
  return jobs;
}

std::vector<Result> run_job(const Job& job, const RowSource& row, std::int64_t index, const RowFacts& facts) {
  const Tag tag{"input", fmt::format("row_{}", index), "row", static_cast<double>(index)};
  const Precision& p = job.precision;
  if (job.moments.empty())
    return compare_softmax(tag, Operation::softmax, p.dtype, {p.arithmetic}, row, facts.softmax, job.softmax);
  return compare_variance(tag, p.dtype, {p.arithmetic}, row, facts.moments, job.moments);
}

/// Calls body(i) for 0 <= i < count on all cores, after(i) one at a time; rethrows the first exception.
template <class Body, class After>
void in_parallel(std::int64_t count, Body body, After after) {
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(stability_rows)
      failure = std::current_exception();
    }
#pragma omp critical(stability_rows)
    after(i);
  }
  if (failure) std::rethrow_exception(failure);
}

bool result_used_by_kernels(const Result& r) {
  const bool low = r.arithmetic.type == Dtype::f16 || r.arithmetic.type == Dtype::bf16;
  return !low && r.order.rfind("lanes", 0) == 0 && r.method != "one_pass" && r.method != "shifted_one_pass" &&
         r.method != "corrected_two_pass" && r.method != "unsafe";
}

void add_row(DataReport& report, std::int64_t index, const RowFacts& facts, const std::vector<Result>& results) {
  const MomentsReference& m = facts.moments;
  if (m.nan_count > 0 && report.rows_with_nan++ == 0) report.first_nan_row = index;
  if (m.inf_count > 0 && report.rows_with_inf++ == 0) report.first_inf_row = index;
  if (std::isinf(m.kappa)) ++report.constant_rows;
  const auto kappa = static_cast<double>(m.kappa);
  if (std::isfinite(kappa) && kappa > report.largest_kappa) {
    report.largest_kappa = kappa;
    report.largest_kappa_row = index;
  }
  const bool any_finite =
      facts.softmax.n > facts.softmax.nan_count + facts.softmax.plus_inf_count + facts.softmax.minus_inf_count;
  if (any_finite) {
    report.largest = std::max(report.largest, static_cast<double>(facts.softmax.max));
    report.smallest = std::min(report.smallest, static_cast<double>(facts.softmax.min));
    report.largest_range = std::max(report.largest_range, static_cast<double>(facts.softmax.range()));
  }
  if (report.methods.empty()) {
    for (const Result& r : results) {
      MethodOnData method;
      method.op = r.op;
      method.method = r.method;
      method.order = r.order;
      method.arithmetic = r.arithmetic.type;
      method.used_by_kernels = result_used_by_kernels(r);
      report.methods.push_back(std::move(method));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    MethodOnData& method = report.methods[i];
    ++method.rows;
    if (!is_safe(r, static_cast<double>(m.rms)) && method.unsafe_rows++ == 0) {
      method.first_unsafe_row = index;
      method.first_unsafe = in_words(r);
    }
    const double lost = digits_lost(r);
    if (method.worst_row < 0 || !(lost <= method.worst_digits_lost)) {
      method.worst_row = index;
      method.worst_digits_lost = lost;
      method.worst_error = r.rel_error.value_or(0);
    }
  }
}

}  // namespace

bool is_safe(const Result& r, double rms) {
  if (r.nan_count + r.inf_count + r.negative_count > 0) return false;
  const double half_the_digits = std::sqrt(format_of(format_counted(r)).unit_roundoff);
  if (r.op == "variance" && r.reference == 0.0)
    return r.value && std::sqrt(std::fabs(*r.value)) <= half_the_digits * rms;
  return !r.rel_error || *r.rel_error <= half_the_digits;
}

double digits_lost(const Result& r) {
  if (r.nan_count + r.inf_count > 0) return std::numeric_limits<double>::infinity();
  if (!r.rel_error) return 0;
  if (std::isnan(*r.rel_error)) return std::numeric_limits<double>::infinity();
  const double lost = std::log10(*r.rel_error / format_of(format_counted(r)).unit_roundoff);
  return lost > 0 ? lost : 0;
}

DataReport study_data(const DataFile& file, int lanes, const std::function<void(const std::vector<Result>&)>& each_row,
                      const std::function<void(std::int64_t, std::int64_t)>& progress) {
  DataReport report;
  report.description = file.description();
  report.rows = file.rows();
  report.cols = file.cols();
  report.dtype = file.dtype();
  report.largest = -std::numeric_limits<double>::infinity();
  report.smallest = std::numeric_limits<double>::infinity();
  const std::vector<Job> jobs = jobs_of(file.dtype(), lanes);
  const auto jobs_per_row = static_cast<std::int64_t>(jobs.size());
  constexpr std::int64_t batch = 64;  // rows in flight: enough for any number of cores, little to hold
  std::vector<RowFacts> facts(static_cast<std::size_t>(std::min(batch, file.rows())));
  std::int64_t done = 0;
  for (std::int64_t first = 0; first < file.rows(); first += batch) {
    const std::int64_t count = std::min(batch, file.rows() - first);
    const auto nothing = [](std::int64_t) {};
    in_parallel(
        count,
        [&](std::int64_t i) {
          const FileRow row(file, first + i);
          RowFacts& f = facts[static_cast<std::size_t>(i)];
          f.moments = reference_moments(row);
          f.softmax = reference_softmax(row);
          f.parts.assign(jobs.size(), {});
        },
        nothing);
    in_parallel(
        count * jobs_per_row,
        [&](std::int64_t i) {
          const std::int64_t index = i / jobs_per_row;
          const auto job = static_cast<std::size_t>(i % jobs_per_row);
          RowFacts& f = facts[static_cast<std::size_t>(index)];
          f.parts[job] = run_job(jobs[job], FileRow(file, first + index), first + index, f);
        },
        [&](std::int64_t) { progress(++done, file.rows() * jobs_per_row); });
    for (std::int64_t i = 0; i < count; ++i) {
      RowFacts& f = facts[static_cast<std::size_t>(i)];
      std::vector<Result> results;
      for (std::vector<Result>& part : f.parts) append(results, std::move(part));
      add_row(report, first + i, f, results);
      for (Result& r : results)
        r.note = fmt::format("{}, {:.1f} digits lost",
                             is_safe(r, static_cast<double>(f.moments.rms)) ? "safe" : "unsafe", digits_lost(r));
      each_row(results);
    }
  }
  return report;
}

namespace {

/// The orders of one method in one arithmetic, those that are safe and those that are not.
struct MethodGroup {
  std::string name;
  std::vector<std::string> safe, unsafe;
  std::int64_t most_rows = 0, rows = 0, first_row = -1;
  std::string first;  ///< what happened on the first row
};

std::vector<MethodGroup> grouped(const DataReport& report, const std::string& op) {
  std::vector<MethodGroup> groups;
  for (const MethodOnData& m : report.methods) {
    if (m.op != op) continue;
    const std::string name = fmt::format("{} in {}", m.method, to_string(m.arithmetic));
    if (groups.empty() || groups.back().name != name) {
      groups.emplace_back();
      groups.back().name = name;
    }
    MethodGroup& group = groups.back();
    group.rows = m.rows;
    (m.unsafe_rows == 0 ? group.safe : group.unsafe).push_back(m.order);
    group.most_rows = std::max(group.most_rows, m.unsafe_rows);
    if (m.unsafe_rows > 0 && (group.first_row < 0 || m.first_unsafe_row < group.first_row)) {
      group.first_row = m.first_unsafe_row;
      group.first = m.first_unsafe;
    }
  }
  return groups;
}

void say_methods(const DataReport& report, const std::string& op, std::vector<std::string>& lines) {
  std::vector<std::string> safe;
  for (const MethodGroup& group : grouped(report, op)) {
    if (!group.safe.empty())
      safe.push_back(group.unsafe.empty() ? group.name
                                          : fmt::format("{} ({})", group.name, fmt::join(group.safe, ", ")));
    if (group.unsafe.empty()) continue;
    lines.push_back(fmt::format("{}: {} ({}) is not safe here: wrong on {} of {} rows, first on row {} ({})", op,
                                group.name, fmt::join(group.unsafe, ", "), group.most_rows, group.rows, group.first_row,
                                group.first));
  }
  if (safe.empty())
    lines.push_back(fmt::format("{}: no method is safe on all of these rows", op));
  else
    lines.push_back(fmt::format("{}: safe on every row: {}", op, fmt::join(safe, "; ")));
  std::vector<std::string> kernels_unsafe;
  for (const MethodOnData& m : report.methods)
    if (m.op == op && m.used_by_kernels && m.unsafe_rows > 0)
      kernels_unsafe.push_back(fmt::format("{} {}", m.method, m.order));
  lines.push_back(kernels_unsafe.empty()
                      ? fmt::format("{}: every form that rowtune's kernels use is safe on this data", op)
                      : fmt::format("{}: of the forms that rowtune's kernels use these lose more than half of their "
                                    "digits: {}; subtract a value near the mean before storing, or store a wider dtype",
                                    op, fmt::join(kernels_unsafe, ", ")));
}

}  // namespace

std::vector<std::string> verdict(const DataReport& report) {
  std::vector<std::string> lines;
  if (report.rows_with_nan > 0)
    lines.push_back(
        fmt::format("{} of {} rows hold a NaN, the first is row {}: NaN is the right answer there, and no "
                    "method is judged by such a row",
                    report.rows_with_nan, report.rows, report.first_nan_row));
  if (report.rows_with_inf > 0)
    lines.push_back(
        fmt::format("{} of {} rows hold an infinity, the first is row {}: -inf masks a softmax, and a "
                    "variance is NaN there",
                    report.rows_with_inf, report.rows, report.first_inf_row));
  if (report.constant_rows > 0)
    lines.push_back(fmt::format("{} of {} rows are constant as {}: their variance is 0", report.constant_rows,
                                report.rows, to_string(report.dtype)));
  if (report.largest_kappa_row >= 0)
    lines.push_back(
        fmt::format("the variance's condition number is {:.3g} at worst (row {}): about {:.1f} digits are at "
                    "stake in the two-pass and Welford forms, {:.1f} in the one-pass form",
                    report.largest_kappa, report.largest_kappa_row, std::log10(report.largest_kappa),
                    2 * std::log10(report.largest_kappa)));
  if (report.largest >= report.smallest)
    lines.push_back(fmt::format("values from {:.5g} to {:.5g}, at most {:.4g} apart in a row", report.smallest,
                                report.largest, report.largest_range));
  say_methods(report, "variance", lines);
  say_methods(report, "softmax", lines);
  return lines;
}

}  // namespace rowtune::stability
