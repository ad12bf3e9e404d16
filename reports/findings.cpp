#include "reports/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace rowtune::reports {
namespace {

std::string shape_of(const db::BestRow& row) { return to_string(Shape{row.rows, row.cols, row.ld, row.off}); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void summarise_devices(Findings& f) {
  std::map<std::tuple<std::string, std::string, std::string>, DeviceSummary> devices;
  for (const auto& c : f.coverage) {
    auto& d = devices[{c.device_model, c.device_limits, c.toolchain}];
    d.model = c.device_model, d.limits = c.device_limits, d.toolchain = c.toolchain;
    d.units = std::max(d.units, c.units);
    d.workloads += 1;
    d.measured += c.measured;
    if (d.first.empty() || c.first_measured_at < d.first) d.first = c.first_measured_at;
    d.last = std::max(d.last, c.last_measured_at);
    f.measured += c.measured;
    if (f.first.empty() || c.first_measured_at < f.first) f.first = c.first_measured_at;
    f.last = std::max(f.last, c.last_measured_at);
  }
  for (auto& [key, device] : devices) f.devices.push_back(device);
}

void summarise_operations(Findings& f) {
  struct Tally {
    OperationSummary summary;
    std::vector<double> log_gains, fractions, log_others;
    std::set<std::string> configs;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Tally> tallies;
  const FastestOthers others = fastest_others(f.baselines);
  const auto mean_of = [](const std::vector<double>& logs) {
    double sum = 0;
    for (const double log : logs) sum += log;
    return logs.empty() ? 0 : std::exp(sum / static_cast<double>(logs.size()));
  };
  for (const auto& row : f.best) {
    if (row.op == to_string(Operation::copy)) continue;
    auto& t = tallies[{row.device_model, row.op, row.dtype, row.regime}];
    auto& s = t.summary;
    s.device_model = row.device_model, s.op = row.op, s.dtype = row.dtype, s.regime = row.regime;
    s.workloads += 1;
    s.base_wins += int(row.is_base);
    t.configs.insert(row.config);
    if (row.ceiling_fraction) t.fractions.push_back(*row.ceiling_fraction);
    if (const auto other = others.find({row.device_model, row.workload()}); other != others.end() && row.time_us) {
      const double time_us = other->second.baseline.time_us;
      t.log_others.push_back(std::log(time_us / *row.time_us));
      s.compared += 1;
      s.ahead += int(time_us >= *row.time_us);
    }
    if (!row.gain_over_base) continue;
    t.log_gains.push_back(std::log(*row.gain_over_base));
    if (*row.gain_over_base > s.best_gain) s.best_gain = *row.gain_over_base, s.best_gain_shape = shape_of(row);
  }
  for (auto& [key, t] : tallies) {
    t.summary.mean_gain = mean_of(t.log_gains);
    t.summary.mean_over_others = mean_of(t.log_others);
    t.summary.median_ceiling_fraction = median(t.fractions);
    t.summary.configs = static_cast<std::int64_t>(t.configs.size());
    f.operations.push_back(t.summary);
  }
}

void group_failures(Findings& f) {
  std::map<std::pair<std::string, std::string>, FailureGroup> groups;
  for (const auto& failure : f.failures) {
    auto& g = groups[{failure.status, reason_of(failure.message)}];
    if (g.count++ > 0) continue;
    g.status = failure.status, g.reason = reason_of(failure.message);
    g.example = fmt::format("{} on {} {} {} {}", failure.config, failure.op, failure.dtype,
                            to_string(Shape{failure.rows, failure.cols, failure.ld, failure.off}), failure.regime);
  }
  for (auto& [key, group] : groups) f.failure_groups.push_back(group);
  std::stable_sort(f.failure_groups.begin(), f.failure_groups.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
}

template <class Range, class Predicate>
std::int64_t count_if(const Range& range, Predicate predicate) {
  return std::count_if(range.begin(), range.end(), predicate);
}

/// The type of the sums, which the study notes as `sums f32`, with what follows after a comma or semicolon.
std::string sums_of(const std::string& note) {
  constexpr std::string_view begin = "sums ";
  if (!note.starts_with(begin)) return "";
  return note.substr(begin.size(), note.find_first_of(",;") - begin.size());
}

/// By op and method, then order and types: what the study's results say of each.
void judge_methods(Findings& f) {
  std::map<std::tuple<std::string, std::string, std::string, std::string, std::string>, MethodVerdict> verdicts;
  for (const auto& r : f.stability) {
    // Methods on the host with an error to judge; thresholds and whole files have views of their own.
    if (!r.device_model.empty() || r.method.empty() || r.method == "none") continue;
    if (!r.rel_error && r.nan_count + r.inf_count == 0) continue;
    auto& v = verdicts[{r.op, r.method, r.order, r.dtype, sums_of(r.note)}];
    v.op = r.op, v.method = r.method, v.order = r.order, v.dtype = r.dtype, v.sums = sums_of(r.note);
    v.results += 1;
    v.nonfinite += int(r.nan_count + r.inf_count > 0);
    v.negative += int(r.negative_count > 0);
    if (r.rel_error && r.bound && *r.bound > 0 && r.bound_kind == "proven") {
      v.bounded += 1;
      v.exceeded += int(!(*r.rel_error <= *r.bound));
      v.worst_share = std::max(v.worst_share.value_or(0), *r.rel_error / *r.bound);
    }
    const bool lost = !r.rel_error || !(*r.rel_error <= 0.01);
    if (lost && r.kappa) v.lost_at = std::min(v.lost_at.value_or(*r.kappa), *r.kappa);
  }
  for (auto& [key, v] : verdicts) {
    if (v.negative > 0)
      v.words = "gives negative variances: not to be used";
    else if (v.exceeded > 0)
      v.words = "beyond its proven bound: an error in rowtune, please report it";
    else if (v.nonfinite > 0)
      v.words = "NaN or infinity on some inputs; see where in the table of results";
    else if (v.lost_at)
      v.words = fmt::format("right below a condition number of {:.2g}", *v.lost_at);
    else
      v.words = "no failure on these inputs";
    f.verdicts.push_back(v);
  }
}

void say_how_sure(Findings& f) {
  if (f.best.empty()) return;
  const auto decided = count_if(f.best, [](auto& r) { return r.decided; });
  const auto tied = count_if(f.best, [](auto& r) { return r.ties > 0; });
  const auto whole = count_if(f.coverage, [](auto& c) { return c.space_size && c.measured >= *c.space_size; });
  f.sureness = fmt::format(
      "How sure: {} of {} winners were decided by paired finals, the others by medians and their intervals; {} have "
      "ties; of {} of {} workloads every config was measured.",
      decided, f.best.size(), tied, whole, f.coverage.size());
}

void find_caveats(Findings& f) {
  const auto note = [&](std::int64_t count, const std::string& sentence) {
    if (count > 0) f.caveats.push_back(fmt::format(fmt::runtime(sentence), count));
  };
  note(count_if(f.best, [](auto& r) { return r.ties > 0; }),
       "{} winners have ties: other configs that these measurements cannot tell from them. Do not read an order into "
       "them.");
  note(count_if(f.best, [](auto& r) { return !r.decided; }),
       "{} winners rest on medians and intervals alone, without paired finals; differences of a few percent may be "
       "placement or clocks.");
  note(count_if(f.best, [](auto& r) { return !r.settled; }),
       "{} winners' estimates had not settled when a limit stopped them; their intervals are wider than asked for.");
  note(count_if(f.best, [](auto& r) { return !r.ceiling_fraction; }),
       "{} winners have no ceiling, because the copy of the same bytes was not tuned: only the gain over the base can "
       "be read.");
  note(count_if(f.best, [](auto& r) { return r.ceiling_fraction && *r.ceiling_fraction > 1.02; }),
       "{} winners are more than 2 % faster than the tuned copy of the same bytes: the copy is then no ceiling for "
       "them (it may be less well tuned, or caches may help).");
  note(count_if(f.best, [](auto& r) { return !r.base_time_us; }),
       "{} winners have no gain, because the base has no time: it failed or was not measured.");
  note(count_if(f.coverage, [](auto& c) { return c.space_size && c.measured < *c.space_size; }),
       "{} workloads were measured in part: a config that was not tried may be faster.");
  note(count_if(f.coverage, [](auto& c) { return c.ok == 0; }),
       "{} workloads have no config that ran right, so they have no winner at all.");
  note(count_if(f.coverage, [](auto& c) { return c.older_results > 0; }),
       "{} workloads have results of older kernels, compilers or protocols too; those are kept and not compared.");
  note(count_if(f.coverage, [](auto& c) { return c.units > 1; }),
       "{} workloads mix measurements of several cards of the same model.");
  std::set<std::string> regimes;
  for (const auto& c : f.coverage) regimes.insert(c.regime);
  if (regimes.size() > 1)
    f.caveats.push_back("There are several regimes here; times of different regimes are never to be compared.");
}

void find_next_steps(Findings& f) {
  if (f.empty()) {
    f.next_steps.push_back(
        "`rowtune tune`: measures the quick shapes on the best device of this machine, in about a minute");
    f.next_steps.push_back("`rowtune tune --shapes llm --budget 30m`: the shapes of language models");
    f.next_steps.push_back("`rowtune stability --quick`: the numerical study");
    return;
  }
  const bool partly = count_if(f.coverage, [](auto& c) { return c.space_size && c.measured < *c.space_size; }) > 0;
  if (partly)
    f.next_steps.push_back(
        "`rowtune tune` with the same options and a larger `--budget`: measures only what is missing");
  if (count_if(f.best, [](auto& r) { return r.op != "copy" && !r.ceiling_fraction; }) > 0)
    f.next_steps.push_back("`rowtune tune` with the same shapes: measures the missing ceilings too");
  if (!f.best.empty()) {
    f.next_steps.push_back("`rowtune dispatch --out DIR`: the winners as a table for your own program");
    f.next_steps.push_back("`rowtune verify`: measures the winners once more, to see whether they hold");
  }
  if (!f.failure_groups.empty())
    f.next_steps.push_back(
        "`rowtune run --op OP --dtype DTYPE --shape SHAPE --config NAME`: runs one config again, such as one that "
        "failed");
  if (f.stability.empty())
    f.next_steps.push_back("`rowtune stability`: how wrong the methods behind these kernels get");
}

}  // namespace

std::string reason_of(const std::string& message) {
  const auto line = message.substr(0, message.find('\n'));
  std::string reason;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < line.size() && std::isdigit(static_cast<unsigned char>(line[at]));
    };
    if (!is_digit(i)) {
      reason += line[i];
      continue;
    }
    while (is_digit(i + 1) || (i + 1 < line.size() && line[i + 1] == '.' && is_digit(i + 2))) ++i;
    reason += 'N';
  }
  return reason.empty() ? "no message" : reason;
}

FastestOthers fastest_others(const std::vector<db::BaselineRow>& baselines) {
  FastestOthers fastest;
  for (const auto& row : baselines) {
    const db::Baseline& b = row.baseline;
    if (b.impl == to_string(Operation::copy)) continue;
    const auto [at, added] = fastest.try_emplace({b.device_model, b.workload}, row);
    if (b.time_us < at->second.baseline.time_us) at->second = row;
  }
  return fastest;
}

Findings findings_of(const db::Database& database) {
  Findings f;
  f.best = database.best({});
  f.coverage = database.coverage();
  f.failures = database.failures();
  f.baselines = database.baselines();
  f.accuracy = database.accuracy();
  f.stability = database.stability();
  summarise_devices(f);
  summarise_operations(f);
  group_failures(f);
  judge_methods(f);
  say_how_sure(f);
  find_caveats(f);
  find_next_steps(f);
  return f;
}

}  // namespace rowtune::reports
