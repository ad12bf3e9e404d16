// Writes the pages that the browser tests open, one for each state that a database can be in. make_samples FOLDER

#include <cmath>
#include <fstream>
#include <iostream>

#include "reports/report.hpp"
#include "reports/tests/fixture.hpp"

namespace rowtune::reports::test {
namespace {

std::vector<db::Measurement> of_one_operation() {
  std::vector<db::Measurement> some;
  for (const auto& m : grid("Test GPU"))
    if (m.key.workload.op == Operation::softmax && m.key.workload.dtype == Dtype::f32) some.push_back(m);
  return some;
}

/// As many workloads as the promise about opening a page names, with the spaces of a real sweep.
std::vector<db::Measurement> two_thousand_workloads() {
  std::vector<db::Measurement> all;
  for (const auto op : {Operation::copy, Operation::softmax, Operation::layernorm, Operation::rmsnorm})
    for (const auto dtype : {Dtype::f32, Dtype::bf16})
      for (int i = 0; i < 250; ++i) {
        const auto w = Workload::of(op, dtype, Shape::of(std::int64_t(1) << (i % 10), 64 + 97 * i));
        for (int k = 0; k < 40; ++k) {
          auto m =
              measured(w, fmt::format("{}.b{}.r1.v{}.s1", k % 2 ? "block" : "lanes", 64 << (k / 2 % 5), 1 << (k / 10)),
                       10 + 0.1 * k + 0.01 * i);
          all.push_back(k == 0 ? base(m) : m);
        }
      }
  return all;
}

void add_baselines(db::Database& database) {
  std::vector<db::Baseline> rows;
  for (const auto& m : of_one_operation())
    if (m.is_base)
      for (const char* impl : {"torch", "torch.compile"})
        rows.push_back({"Test GPU",
                        m.key.workload,
                        impl,
                        "2.11",
                        *m.time_us * (impl[5] ? 0.95 : 1.4),
                        {},
                        {},
                        "graphs",
                        "others.json",
                        "2026-01-01T00:00:00Z"});
  database.record_baselines(rows);
}

/// Results in the form that the study records, by formulas instead of arithmetic.
void add_study(db::Database& database) {
  std::vector<db::StabilityRow> rows;
  const auto add = [&](const std::string& experiment, const std::string& name, const std::string& op,
                       const std::string& method, const std::string& order, const std::string& dtype, std::int64_t n,
                       double kappa, double error) {
    db::StabilityRow r;
    r.experiment = experiment, r.case_name = name, r.op = op, r.method = method, r.order = order, r.dtype = dtype;
    r.n = n, r.kappa = kappa, r.rel_error = error, r.note = "sums " + dtype;
    if (method == "two_pass") r.bound = 10 * error, r.bound_kind = "proven";
    if (method == "one_pass" && error > 1) r.negative_count = 1;
    rows.push_back(r);
    return rows.size() - 1;
  };
  for (const char* order : {"sequential", "lanes256", "pairwise"})
    for (const auto& [method, power] : {std::pair("one_pass", 2), std::pair("two_pass", 1), std::pair("welford", 1)}) {
      for (int e = 0; e <= 8; ++e)
        add("condition", fmt::format("mean_1e+{:02}", e), "variance", method, order, "f32", 4096, std::pow(10, e),
            6e-8 * std::pow(10, power * e * 0.75));
      for (int e = 4; e <= 20; e += 4)
        add("length", fmt::format("n_2^{}", e), "variance", method, order, "f32", 1 << e, 100, 1e-7 * (1 << (e / 2)));
      for (const char* set :
           {"Lew", "Lottery", "Mavro", "Michelso", "NumAcc1", "NumAcc2", "NumAcc3", "NumAcc4", "PiDigits"}) {
        const auto i = add("strd", set, "sd", method, order, "f64", 100, 10, 1e-14);
        rows[i].lre = method[0] == 'o' ? 8 : 13.5, rows[i].lre_ceiling = 15;
      }
    }
  db::StabilityRow t;
  t.experiment = "threshold", t.case_name = "one_dominant_n_16", t.op = "softmax", t.method = "unsafe";
  t.order = "pairwise", t.dtype = "f32", t.n = 16, t.note = "sums f32; breaks at 88.722839, range predicts 88.722839";
  rows.push_back(t);
  database.record_stability({"study test", "2026-01-01T00:00:00Z", "host", "0.1.0", "formulas", "quick"}, rows);
}

std::vector<db::Measurement> hostile() {
  const std::string evil =
      "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
  std::vector<db::Measurement> all;
  for (std::int64_t cols : {64, 1000}) {
    auto m = base(measured(db::test::softmax(64, cols), "block.b256.r1.v8.s1", 10));
    auto f = failed(db::test::softmax(64, cols), "block.b512.r1.v8.s1", Outcome::crash, evil);
    auto named = measured(db::test::softmax(64, cols), evil, 20);
    for (auto* each : {&m, &f, &named}) each->key.device_model = evil, each->key.device_limits = evil;
    all.insert(all.end(), {m, f, named});
  }
  return all;
}

}  // namespace
}  // namespace rowtune::reports::test

int main(int argc, char** argv) {
  using namespace rowtune;
  using namespace rowtune::reports::test;
  if (argc != 2) {
    std::cerr << "usage: make_samples FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const auto page = [&](const std::string& name, const std::vector<std::vector<db::Measurement>>& parts, bool baselines,
                        bool study) {
    const db::test::TemporaryFolder scratch;
    auto database = db::Database::open(scratch.file("t.db"), db::Database::Mode::read_write);
    for (const auto& part : parts) database.record_all(part);
    if (baselines) add_baselines(database);
    if (study) add_study(database);
    std::ofstream html(folder / (name + ".html"), std::ios::binary);
    reports::write_html(database, html);
    std::ofstream markdown(folder / (name + ".md"), std::ios::binary);
    reports::write_markdown(database, markdown);
  };
  page("empty", {}, false, false);
  page("one_operation", {of_one_operation()}, false, false);
  page("one_device", {grid("Test GPU")}, true, true);
  page("two_devices", {grid("Test GPU"), grid("Other GPU")}, true, false);
  page("study_only", {}, false, true);
  page("hostile", {hostile()}, false, false);
  page("large", {two_thousand_workloads()}, false, false);
}
