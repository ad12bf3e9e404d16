// The report as Markdown and as CSV.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "reports/findings.hpp"
#include "reports/printers.hpp"
#include "reports/report.hpp"

namespace rowtune::reports {
namespace {

const TableStyle varying{TimeUnit::automatic, true};  ///< what is the same in every row is said once

void write_list(const std::vector<std::string>& sentences, std::ostream& out) {
  for (const auto& sentence : sentences) out << "* " << sentence << '\n';
  out << '\n';
}

void write_empty(const Findings& f, std::ostream& out) {
  out << "This database is empty: nothing was tuned into it, and no study was run. To fill it:\n\n";
  write_list(f.next_steps, out);
}

void write_devices(const Findings& f, std::ostream& out) {
  static const std::vector<Field<DeviceSummary>> fields{
      {{"device", "", "", ""}, [](const auto& d) { return d.model; }},
      {{"limits", "", "", ""}, [](const auto& d) { return d.limits; }},
      {{"compiler", "", "", ""}, [](const auto& d) { return d.toolchain; }},
      {{"units", "", "", "", Style::count}, [](const auto& d) { return d.units; }},
      {{"workloads", "", "", "", Style::count}, [](const auto& d) { return d.workloads; }},
      {{"configs", "", "", "", Style::count}, [](const auto& d) { return d.measured; }},
      {{"from (UTC)", "", "", ""}, [](const auto& d) { return d.first; }},
      {{"to (UTC)", "", "", ""}, [](const auto& d) { return d.last; }}};
  out << "## What was tuned, on what, when\n\n";
  print_markdown(sheet_of(fields, f.devices), out);
  out << '\n';
  if (!f.sureness.empty()) out << f.sureness << "\n\n";
}

void write_summary(const Findings& f, std::ostream& out) {
  if (f.operations.empty()) return;
  const auto unless_zero = [](double value) { return value > 0 ? Cell(value) : Cell(); };
  const std::vector<Field<OperationSummary>> fields{
      {{"device", "", "", ""}, [](const auto& s) { return s.device_model; }},
      {{"op", "", "", ""}, [](const auto& s) { return s.op; }},
      {{"dtype", "", "", ""}, [](const auto& s) { return s.dtype; }},
      {{"regime", "", "", ""}, [](const auto& s) { return s.regime; }},
      {{"workloads", "", "", "", Style::count}, [](const auto& s) { return s.workloads; }},
      {{"mean gain", "", "", "", Style::ratio}, [&](const auto& s) { return unless_zero(s.mean_gain); }},
      {{"best gain", "", "", "", Style::ratio}, [&](const auto& s) { return unless_zero(s.best_gain); }},
      {{"at", "", "", ""}, [](const auto& s) { return s.best_gain_shape; }},
      {{"median of ceiling", "", "", "", Style::fraction},
       [&](const auto& s) { return unless_zero(s.median_ceiling_fraction); }},
      {{"base wins", "", "", "", Style::count}, [](const auto& s) { return s.base_wins; }},
      {{"over the best other", "", "", "", Style::ratio},
       [&](const auto& s) { return unless_zero(s.mean_over_others); }},
      {{"ahead", "", "", ""},
       [](const auto& s) { return s.compared > 0 ? Cell(fmt::format("{} of {}", s.ahead, s.compared)) : Cell(); }},
      {{"configs that win", "", "", "", Style::count}, [](const auto& s) { return s.configs; }}};
  out << "## In short\n\n";
  print_markdown(sheet_of(fields, f.operations), out, varying);
  out << "\nGains are over the base config; the mean is geometric. Where the base wins, tuning found nothing better, "
         "and "
         "that is a result too.\n\n";
}

void write_winners(const Findings& f, std::ostream& out) {
  std::vector<std::string> ops;
  for (const auto op : all_operations()) ops.push_back(to_string(op));
  out << "## Winners\n\n";
  if (f.best.empty()) out << "No workload has a config that ran right.\n\n";
  for (const auto& op : ops) {
    std::vector<db::BestRow> rows;
    std::copy_if(f.best.begin(), f.best.end(), std::back_inserter(rows), [&](const auto& r) { return r.op == op; });
    if (rows.empty()) continue;
    out << "### " << escape_markdown(op) << (op == "copy" ? ", the ceiling" : "") << "\n\n";
    auto sheet = sheet_of(best_fields(), rows);
    std::vector<std::string> columns{"device_model", "dtype"};
    const bool plain = std::all_of(rows.begin(), rows.end(), [](auto& r) { return r.ld == r.cols && r.off == 0; });
    for (const char* name : {"rows", "cols", "ld", "off"})
      if (plain ? std::string_view(name) != "ld" && std::string_view(name) != "off" : true) columns.push_back(name);
    columns.insert(columns.end(), {"regime", "options", "config", "time_us", "time_lo_us", "time_hi_us", "gbps",
                                   "ceiling_fraction", "gain_over_base", "ties", "max_error_ulp"});
    TableStyle style;
    style.only_varying = false;
    // Columns that say the same in every row are said once; the measured ones stay.
    const auto picked = select(sheet, columns);
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool key = std::set<std::string>{"device_model", "dtype", "regime", "options"}.contains(columns[i]);
      const bool same = std::all_of(picked.rows.begin(), picked.rows.end(),
                                    [&](const auto& row) { return row[i] == picked.rows[0][i]; });
      if (key && same)
        out << escape_markdown(fmt::format("{}: {}", columns[i], text_of(picked.rows[0][i], Style::text, TimeUnit::us)))
            << "  \n";
      else
        kept.push_back(columns[i]);
    }
    out << '\n';
    print_markdown(select(sheet, kept), out, style);
    out << '\n';
  }
}

void write_failures(const Findings& f, std::ostream& out) {
  out << "## Failures\n\n";
  if (f.failure_groups.empty()) {
    out << "None: every config that was measured ran and gave right results.\n\n";
    return;
  }
  static const std::vector<Field<FailureGroup>> fields{
      {{"status", "", "", ""}, [](const auto& g) { return g.status; }},
      {{"count", "", "", "", Style::count}, [](const auto& g) { return g.count; }},
      {{"reason", "", "", ""}, [](const auto& g) { return g.reason; }},
      {{"for example", "", "", ""}, [](const auto& g) { return g.example; }}};
  print_markdown(sheet_of(fields, f.failure_groups), out);
  out << "\nA failed config is never chosen. The view `failures` has every one with its full text.\n\n";
}

void write_coverage(const Findings& f, std::ostream& out) {
  struct Group {
    std::string device, op, dtype, regime;
    std::int64_t workloads = 0, measured = 0, space = 0, failed = 0, unsettled = 0, decided = 0, ceilings = 0;
    bool space_known = true;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Group> groups;
  for (const auto& c : f.coverage) {
    auto& g = groups[{c.device_model, c.op, c.dtype, c.regime}];
    g.device = c.device_model, g.op = c.op, g.dtype = c.dtype, g.regime = c.regime;
    g.workloads += 1, g.measured += c.measured, g.failed += c.failed, g.unsettled += c.unsettled;
    g.space += c.space_size.value_or(0);
    g.space_known = g.space_known && c.space_size.has_value();
    g.decided += int(c.decided), g.ceilings += int(c.has_ceiling);
  }
  std::vector<Group> rows;
  for (auto& [key, group] : groups) rows.push_back(group);
  const std::vector<Field<Group>> fields{
      {{"device", "", "", ""}, [](const auto& g) { return g.device; }},
      {{"op", "", "", ""}, [](const auto& g) { return g.op; }},
      {{"dtype", "", "", ""}, [](const auto& g) { return g.dtype; }},
      {{"regime", "", "", ""}, [](const auto& g) { return g.regime; }},
      {{"workloads", "", "", "", Style::count}, [](const auto& g) { return g.workloads; }},
      {{"measured", "", "", "", Style::count}, [](const auto& g) { return g.measured; }},
      {{"space", "", "", "", Style::count}, [](const auto& g) { return g.space_known ? Cell(g.space) : Cell(); }},
      {{"failed", "", "", "", Style::count}, [](const auto& g) { return g.failed; }},
      {{"unsettled", "", "", "", Style::count}, [](const auto& g) { return g.unsettled; }},
      {{"decided", "", "", "", Style::count}, [](const auto& g) { return g.decided; }},
      {{"with ceiling", "", "", "", Style::count}, [](const auto& g) { return g.ceilings; }}};
  out << "## Coverage\n\n";
  print_markdown(sheet_of(fields, rows), out, varying);
  out << '\n';
}

void write_others(const Findings& f, std::ostream& out) {
  if (!f.baselines.empty()) {
    out << "## Other libraries\n\n";
    print_markdown(sheet_of(baseline_fields(), f.baselines), out, varying);
    out << "\nA speedup above 1 means that rowtune's config takes less time. The methods of measuring may differ.\n\n";
  }
  if (!f.accuracy.empty()) {
    out << "## Errors of the tuned kernels\n\n";
    print_markdown(sheet_of(accuracy_fields(), f.accuracy), out, varying);
    out << '\n';
  }
  if (!f.stability.empty()) {
    struct Worst {
      std::string op, method, dtype;
      std::int64_t results = 0, nan = 0, inf = 0, negative = 0, false_zero = 0;
      std::optional<double> worst;
    };
    std::map<std::tuple<std::string, std::string, std::string>, Worst> methods;
    for (const auto& r : f.stability) {
      auto& w = methods[{r.op, r.method, r.dtype}];
      w.op = r.op, w.method = r.method, w.dtype = r.dtype, w.results += 1;
      w.nan += r.nan_count, w.inf += r.inf_count, w.negative += r.negative_count, w.false_zero += r.false_zero_count;
      if (r.rel_error && !(r.rel_error <= w.worst)) w.worst = r.rel_error;
    }
    std::vector<Worst> rows;
    for (auto& [key, worst] : methods) rows.push_back(worst);
    const std::vector<Field<Worst>> fields{
        {{"op", "", "", ""}, [](const auto& w) { return w.op; }},
        {{"method", "", "", ""}, [](const auto& w) { return w.method; }},
        {{"dtype", "", "", ""}, [](const auto& w) { return w.dtype; }},
        {{"results", "", "", "", Style::count}, [](const auto& w) { return w.results; }},
        {{"largest relative error", "", "", "", Style::error},
         [](const auto& w) { return w.worst ? Cell(*w.worst) : Cell(); }},
        {{"NaN", "", "", "", Style::count}, [](const auto& w) { return w.nan; }},
        {{"infinite", "", "", "", Style::count}, [](const auto& w) { return w.inf; }},
        {{"negative", "", "", "", Style::count}, [](const auto& w) { return w.negative; }},
        {{"false zero", "", "", "", Style::count}, [](const auto& w) { return w.false_zero; }}};
    out << "## Stability\n\n";
    print_markdown(sheet_of(fields, rows), out, varying);
    out << "\nThe largest error is over every case of the study, the hopeless ones included; `stability.csv` and the "
           "view "
           "`stability` have each case.\n\n";
    static const std::vector<Field<MethodVerdict>> verdicts{
        {{"op", "", "", ""}, [](const auto& v) { return v.op; }},
        {{"method", "", "", ""}, [](const auto& v) { return v.method; }},
        {{"order", "", "", ""}, [](const auto& v) { return v.order; }},
        {{"dtype", "", "", ""}, [](const auto& v) { return v.dtype; }},
        {{"sums", "", "", ""}, [](const auto& v) { return v.sums; }},
        {{"beside a proven bound", "", "", "", Style::count}, [](const auto& v) { return v.bounded; }},
        {{"beyond it", "", "", "", Style::count}, [](const auto& v) { return v.exceeded; }},
        {{"closest to it", "", "", "", Style::fraction},
         [](const auto& v) { return v.worst_share ? Cell(*v.worst_share) : Cell(); }},
        {{"verdict", "", "", ""}, [](const auto& v) { return v.words; }}};
    std::vector<MethodVerdict> failing;
    std::copy_if(f.verdicts.begin(), f.verdicts.end(), std::back_inserter(failing),
                 [](const auto& v) { return v.fails(); });
    out << "### Verdict\n\n"
        << fmt::format(
               "Of {} combinations of method, order and types, {} show no failure on these inputs. The others:\n\n",
               f.verdicts.size(), f.verdicts.size() - failing.size());
    print_markdown(sheet_of(verdicts, failing), out, varying);
    out << '\n';
  }
}

constexpr const char* how_to_read = R"(## How to read it

* **time** is the median of the samples per launch; **low** and **high** bound the median with 95 % confidence.
* **GB/s** counts each input once and each output once. **of ceiling** is the time of the tuned copy of the same bytes
  on the same device in the same regime, over the time: 100 % is as fast as memory allows.
* **gain** is the time of the base, the config a sensible engineer writes by hand, over the time. The base is always a
  candidate, so a gain is never below 1.
* **ties** counts the other configs whose measurements cannot be told from the winner's. With ties, the base wins if it
  is among them.
* **max error** is the largest error of the check before timing, over all elements, in ulps of the dtype.
* A config's name says everything: algorithm, then axes. `b` block size, `r` rows per warp, `v` vector width, `s` blocks
  that share a row.

)";

}  // namespace

void write_markdown(const db::Database& database, std::ostream& out) {
  const auto f = findings_of(database);
  out << "# rowtune report\n\n";
  if (f.empty()) return write_empty(f, out);
  if (!f.coverage.empty()) {
    out << fmt::format("{} results for {} workloads, measured from {} to {} (UTC).\n\n", f.measured, f.coverage.size(),
                       f.first, f.last);
    write_devices(f, out);
    write_summary(f, out);
    write_winners(f, out);
    write_failures(f, out);
    write_coverage(f, out);
  } else {
    out << "Nothing was tuned into this database yet.\n\n";
  }
  write_others(f, out);
  if (!f.caveats.empty()) {
    out << "## Be careful with\n\n";
    write_list(f.caveats, out);
  }
  out << how_to_read << "## Next\n\n";
  write_list(f.next_steps, out);
}

void write_csv(const db::Database& database, std::ostream& out) {
  print_csv(sheet_of(best_fields(), database.leaderboard({})), out);
}

}  // namespace rowtune::reports
