#include "stability/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "db/database.hpp"
#include "kernels/errors.hpp"
#include "stability/cases.hpp"
#include "stability/formats.hpp"
#include "stability/kernel_errors.hpp"
#include "stability/records.hpp"
#include "stability/report_csv.hpp"
#include "stability/report_html.hpp"
#include "stability/report_md.hpp"
#include "stability/user_data.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using namespace stability;

struct Request {
  std::string out, input, cases, dtype, db, device, op;
  TableFormat format = TableFormat::text;
  bool quick = false, kernels = false, again = false, quiet = false, help = false;
  int lanes = 256;
  StudyOptions study;
};

po::options_description described(Request& r, std::string& format) {
  po::options_description all(
      "rowtune stability: how wrong each way to compute a variance or a softmax gets.\n\n"
      "Without --input, --cases or --kernels it runs the study.\n\nOptions");
  all.add_options()  //
      ("out", po::value(&r.out)->value_name("DIR"),
       "write stability.csv, .md and .html there (input.csv with --input)")                  //
      ("quick", po::bool_switch(&r.quick), "a study of seconds instead of a minute or two")  //
      ("input", po::value(&r.input)->value_name("FILE"),
       "the methods on your data: .npy (f2, f4, f8; 1-D or 2-D, rows are rows) or text columns")  //
      ("dtype", po::value(&r.dtype)->value_name("D"),
       "with --input: round the data to f32, f16, bf16 or f64 first; bf16 also says what a .npy of uint16 holds; with "
       "--kernels: only this dtype")                                                                 //
      ("cases", po::value(&r.cases)->value_name("FILE"), "a JSON list of cases with known answers")  //
      ("kernels", po::bool_switch(&r.kernels),
       "what the tuned kernels of the database really output on rows of the study: errors of each config, recorded "
       "beside its time")                                                                                            //
      ("device", po::value(&r.device)->default_value("auto")->value_name("D"), "with --kernels: auto, cpu, cuda:N")  //
      ("op", po::value(&r.op)->value_name("OP"), "with --kernels: only this operation")                              //
      ("again", po::bool_switch(&r.again), "with --kernels: also what was measured before")                          //
      ("lanes", po::value(&r.lanes)->default_value(256)->value_name("N"),
       "with --input: lanes of the strided order, a power of two")                                               //
      ("seed", po::value(&r.study.seed)->default_value(r.study.seed)->value_name("N"), "of the synthetic data")  //
      ("db", po::value(&r.db)->default_value("rowtune.db")->value_name("FILE"),
       "where the study's results are recorded; empty: nowhere")  //
      ("format", po::value(&format)->default_value("table")->value_name("F"),
       "of --input, --cases and --kernels: table, csv, json")  //
      ("quiet", po::bool_switch(&r.quiet), "no progress")      //
      ("help,h", po::bool_switch(&r.help), "this text");
  return all;
}

void check(const Request& r) {
  const int questions = int(!r.input.empty()) + int(!r.cases.empty()) + int(r.kernels);
  if (questions > 1) throw UsageError("--input, --cases and --kernels are different questions: ask one at a time");
  if (questions > 0 && r.quick) throw UsageError("--quick is about the study; leave it out here");
  if (r.input.empty() && !r.kernels && !r.dtype.empty())
    throw UsageError("--dtype says how to take the data of --input; name a file there");
  if (!r.kernels && (!r.op.empty() || r.device != "auto" || r.again))
    throw UsageError("--op, --device and --again are about --kernels; add it, or leave them out");
  if (r.kernels && r.db.empty()) throw UsageError("--kernels needs the database of a tune; name it with --db");
  const int lanes = r.lanes;
  if (r.input.empty() && lanes != 256) throw UsageError("--lanes is about --input: the study has its own");
  if (lanes < 1 || lanes > 65536 || (lanes & (lanes - 1)) != 0)
    throw UsageError(fmt::format("--lanes {} is not a power of two from 1 to 65536", lanes));
}

/// A line that overwrites itself on a terminal, else a line now and then.
class Progress {
 public:
  explicit Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0), began_(std::time(nullptr)) {}
  ~Progress() {
    if (terminal_ && shown_) fmt::print(stderr, "\r\x1b[K");
  }
  void operator()(std::size_t done, std::size_t total, const std::string& what) {
    if (quiet_) return;
    const std::time_t spent = std::time(nullptr) - began_;
    if (terminal_) {
      const double left = static_cast<double>(spent) / static_cast<double>(done) * static_cast<double>(total - done);
      fmt::print(stderr, "\r\x1b[Kstability {}/{}  {}  about {:.0f} s left", done, total, what, left);
      std::fflush(stderr);
      shown_ = true;
    } else if (done * 10 / total != (done - 1) * 10 / total) {
      fmt::print(stderr, "stability {}/{} after {} s: {}\n", done, total, spent, what);
    }
  }

 private:
  bool quiet_, terminal_, shown_ = false;
  std::time_t began_;
};

std::filesystem::path make_directory(const std::string& out) {
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error || !std::filesystem::is_directory(out))
    throw EnvironmentError(fmt::format("cannot create the directory '{}': {}", out, error.message()));
  return out;
}

/// Under a temporary name first: a reader never meets half a file.
void write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path temporary = path.string() + ".part";
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file)
      throw EnvironmentError(
          fmt::format("cannot write '{}': is the disk full, or the directory read-only?", path.string()));
  }
  std::filesystem::rename(temporary, path);
}

int run_study(const Request& request) {
  StudyFacts facts;
  facts.options = request.study;
  facts.options.quick = request.quick;
  facts.precision = reference_precision();
  // What cannot be written is said before the work, not after it.
  std::optional<std::filesystem::path> out;
  if (!request.out.empty()) out = make_directory(request.out);
  std::optional<db::Database> database;
  if (!request.db.empty()) database.emplace(db::Database::open(request.db, db::Database::Mode::read_write));

  std::vector<Result> results;
  {
    Progress progress(request.quiet);
    results = run_cells(study_cells(facts.options), [&](std::size_t done, std::size_t total, const std::string& label) {
      progress(done, total, label);
    });
  }
  if (out) {
    write_file(*out / "stability.csv", csv_of(results));
    write_file(*out / "stability.md", markdown_report(results, facts));
    write_file(*out / "stability.html", html_report(results, facts));
  }
  if (database) record(*database, results, facts);

  for (const std::string& line : findings_in_words(results, facts)) fmt::print("{}\n", line);
  if (out) fmt::print("Written: {0}/stability.csv, {0}/stability.md, {0}/stability.html\n", out->string());
  const BoundCheck bounds = check_bounds(results);
  for (const Result* r : bounds.exceeding)
    fmt::print(stderr, "rowtune: error above its proven bound: {} {} {} {} {}: {:.3g} > {:.3g}\n", r->experiment,
               r->test_case, r->op, r->method, r->order, r->rel_error.value_or(0), r->bound.value_or(0));
  bool cases_right = true;
  for (const CaseSummary& c : summarise_cases(results)) {
    if (c.kernels == c.kernels_right) continue;
    cases_right = false;
    fmt::print(stderr, "rowtune: case {}: {} of {} forms that the kernels use are wrong\n", c.id,
               c.kernels - c.kernels_right, c.kernels);
  }
  return bounds.exceeded == 0 && cases_right ? 0 : 1;
}

int run_cases(const Request& request) {
  const std::vector<KnownCase> cases = read_cases(request.cases);
  Table table;
  table.columns = {"verdict", "case", "op",      "dtype",           "method", "order",
                   "sums",    "exp",  "kernels", "error/tolerance", "worst"};
  std::size_t kernels = 0, kernels_wrong = 0, others = 0, others_wrong = 0;
  Progress progress(request.quiet);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const CaseVerdict& v : judge_case(cases[i])) {
      (v.used_by_kernels ? kernels : others) += 1;
      (v.used_by_kernels ? kernels_wrong : others_wrong) += !v.right;
      table.rows.push_back({v.right ? "right" : "WRONG", v.id, v.op, to_string(v.dtype), v.method, v.order,
                            to_string(v.arithmetic), v.fast_exponential ? "fast" : "accurate",
                            v.used_by_kernels ? "yes" : "no", fmt::format("{:.3g}", v.worst), v.detail});
    }
    progress(i + 1, cases.size(), cases[i].id);
  }
  fmt::print("{}", render(table, request.format));
  fmt::print(request.format == TableFormat::text ? stdout : stderr,
             "{} cases: {} of {} forms that rowtune's kernels use are right, {} of {} others\n", cases.size(),
             kernels - kernels_wrong, kernels, others - others_wrong, others);
  return kernels_wrong == 0 ? 0 : 1;
}

int run_kernels(const Request& request) {
  KernelErrorsRequest wanted;
  if (!request.op.empty()) wanted.query.op = parse_operation(request.op);
  if (!request.dtype.empty()) wanted.query.dtype = parse_dtype(request.dtype);
  wanted.again = request.again;
  if (!std::filesystem::exists(request.db))
    throw EnvironmentError(
        fmt::format("there is no database '{}'; tune first: rowtune tune --db {}", request.db, request.db));
  db::Database database = db::Database::open(request.db, db::Database::Mode::read_write);
  std::string why;
  const std::unique_ptr<Device> device = open_device(request.device, &why);
  if (!request.quiet && !why.empty()) fmt::print(stderr, "{}\n", why);
  KernelErrorsCounts counts;
  {
    Progress progress(request.quiet);
    counts = measure_kernels(
        *device, database, wanted,
        [&](std::size_t done, std::size_t total, const std::string& what) { progress(done, total, what); });
  }
  db::BestQuery query = wanted.query;
  query.device_model = device->info().model;
  query.device_limits = device->info().limits;
  const std::vector<db::AccuracyRow> rows = database.accuracy(query);
  if (counts.outdated > 0)
    fmt::print(stderr,
               "rowtune: {} recorded configs are of other kernel sources or another toolchain than this program's and "
               "were left out; tune again to measure them\n",
               counts.outdated);
  for (const std::string& failure : counts.failures) fmt::print(stderr, "rowtune: {}\n", failure);
  if (rows.empty())
    throw NotFoundError(
        fmt::format("'{}' holds no tuned kernel of {} that this program can run; tune first: rowtune "
                    "tune --device {} --db {}",
                    request.db, device->info().model, device->info().id, request.db));
  fmt::print("{}", render(kernel_errors_table(rows), request.format));
  fmt::print(request.format == TableFormat::text ? stdout : stderr,
             "{} configs measured now, {} before, {} failed; ask: rowtune best --max-error ULPS\n", counts.configs,
             counts.present, counts.failed);
  return counts.failed == 0 ? 0 : 1;
}

Table methods_table(const DataReport& report) {
  Table table;
  table.columns = {"op",          "method",           "order",     "sums",        "kernels",    "rows",
                   "unsafe_rows", "first_unsafe_row", "worst_row", "worst_error", "digits_lost"};
  for (const MethodOnData& m : report.methods)
    table.rows.push_back({m.op, m.method, m.order, to_string(m.arithmetic), m.used_by_kernels ? "yes" : "no",
                          fmt::format("{}", m.rows), fmt::format("{}", m.unsafe_rows),
                          m.first_unsafe_row < 0 ? "" : fmt::format("{}", m.first_unsafe_row),
                          fmt::format("{}", m.worst_row), fmt::format("{:.2e}", m.worst_error),
                          fmt::format("{:.1f}", m.worst_digits_lost)});
  return table;
}

int run_input(const Request& request) {
  DataFileOptions options;
  if (!request.dtype.empty()) options.dtype = parse_study_dtype(request.dtype);
  const std::unique_ptr<DataFile> file = open_data_file(request.input, options);
  std::ofstream csv;
  std::filesystem::path csv_path;
  if (!request.out.empty()) {
    csv_path = make_directory(request.out) / "input.csv";
    csv.open(csv_path, std::ios::binary);
    csv << csv_header();
  }
  DataReport report;
  {
    Progress progress(request.quiet);
    report = study_data(
        *file, request.lanes,
        [&](const std::vector<Result>& results) {
          if (csv.is_open())
            for (const Result& r : results) csv << csv_line(r);
        },
        [&](std::int64_t done, std::int64_t total) {
          progress(static_cast<std::size_t>(done), static_cast<std::size_t>(total), request.input);
        });
  }
  if (csv.is_open()) {
    csv.close();
    if (!csv) throw EnvironmentError(fmt::format("cannot write '{}': is the disk full?", csv_path.string()));
  }
  if (request.format == TableFormat::text) {
    fmt::print("{}: {}\n\n{}\n", request.input, report.description, as_text(methods_table(report)));
    fmt::print(
        "safe: the right kind and sign, and at least half of the digits right. digits_lost: of the worst row.\n\n");
    for (const std::string& line : verdict(report)) fmt::print("{}.\n", line);
    if (!csv_path.empty()) fmt::print("Written, each row and method: {}\n", csv_path.string());
  } else {
    fmt::print("{}", render(methods_table(report), request.format));
    for (const std::string& line : verdict(report)) fmt::print(stderr, "{}.\n", line);
  }
  return 0;
}

}  // namespace

int stability_command(int argc, const char* const* argv) {
  Request request;
  std::string format;
  const po::options_description options = described(request, format);
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional({})
                  .style(po::command_line_style::default_style & ~po::command_line_style::allow_guessing)
                  .run(),
              values);
    po::notify(values);
  } catch (const po::error& e) {
    throw UsageError(fmt::format("stability: {}; rowtune stability --help lists the options", e.what()));
  }
  if (request.help) {
    std::cout << options << '\n';
    return 0;
  }
  request.format = parse_table_format(format);
  check(request);
  if (!request.cases.empty()) return run_cases(request);
  if (!request.input.empty()) return run_input(request);
  if (request.kernels) return run_kernels(request);
  return run_study(request);
}

int stability_command(const std::vector<std::string>& arguments) {
  std::vector<const char*> words = {"stability"};
  for (const std::string& word : arguments) words.push_back(word.c_str());
  return stability_command(static_cast<int>(words.size()), words.data());
}

}  // namespace rowtune
