// rowtune verify: are the stored winners still right, still the fastest, and as fast as they were?

#include <fmt/format.h>

#include <algorithm>

#include "db/database.hpp"
#include "kernels/errors.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/compile_ahead.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/pool.hpp"
#include "tuner/verdict.hpp"
#include "tuner/worker_device.hpp"
#include "tuner/worker_measurer.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Cell;
using reports::Style;

constexpr int rounds = 15;       ///< of each allocation
constexpr int allocations = 3;   ///< placement in memory moves times
constexpr double seconds = 1.0;  ///< at most, of each allocation
constexpr double confidence = 0.95;

CommandLine describe() {
  CommandLine line(
      "verify", "verify [--op OPS] [--dtype DTYPES] [options]",
      "Checks and times the stored winners again, in turns with their base and their runner-up, over several "
      "allocations.\nSays of each winner whether it is FASTER than both, the SAME as one of them, SLOWER, or UNSURE; "
      "and "
      "whether it is\nFASTER, SLOWER, the SAME or UNSURE against its own stored time.");
  line.add_device("auto, cpu, or cuda:N");
  line.add("Options")("op", po::value<std::string>()->default_value("all")->value_name("OP,OP"),
                      "only these operations")(
      "dtype", po::value<std::string>()->default_value("all")->value_name("DTYPE,DTYPE"), "only these dtypes")(
      "shape", po::value<std::string>()->value_name("RxC"), "only this shape")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"), "cold, warm or overlapped")(
      "margin", po::value<double>()->default_value(0.02, "0.02")->value_name("SHARE"),
      "differences up to this count as the same")("same-unit", po::bool_switch(),
                                                  "only results of this very device, not of others of its model")(
      "fail-on-regression", po::bool_switch(),
      "exit 1 if a winner is wrong, SLOWER than base or runner-up, or SLOWER than its stored time")(
      "timeout", po::value<std::string>()->default_value("60s")->value_name("TIME"), "of one request to the worker");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune verify --fail-on-regression", "are all winners still what they were, for a script");
  line.add_example("rowtune verify --op softmax --dtype bf16", "some of them");
  return line;
}

db::BestQuery query_from(const CommandLine& line, const DeviceInfo& device) {
  db::BestQuery query;
  query.device_model = device.model;
  query.device_limits = device.limits;
  query.regime = parse_regime(line.text("regime"));
  if (line.has("shape")) query.shape = parse_shape(line.text("shape"));
  if (line.get<bool>("same-unit")) query.uuid = device.uuid;
  return query;
}

/// A winner, and what it is timed against.
struct Trial {
  db::BestRow winner;
  std::vector<std::string> configs;  ///< the winner first
  std::vector<CompileAhead::Ticket> tickets;
  std::vector<std::vector<double>> samples;
  std::string failed;  ///< why there are none
};

std::vector<Trial> trials_of(const CommandLine& line, const WorkerMeasurer& worker) {
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  db::BestQuery query = query_from(line, worker.device());
  const auto ops = parse_operations(line.text("op"));
  const auto dtypes = parse_dtypes(line.text("dtype"));
  query.top = 2;
  std::vector<Trial> trials;
  // Places off the grid have no winners to verify, but the best of a few configs, unless one is asked for.
  const auto unswept = query.shape ? std::set<db::DeviceWorkload>() : database.unswept(query);
  for (db::BestRow& row : database.best(query)) {
    const Workload workload = row.workload();
    if (unswept.contains({row.device_model, row.device_limits, workload})) continue;
    if (std::find(ops.begin(), ops.end(), workload.op) == ops.end() ||
        std::find(dtypes.begin(), dtypes.end(), workload.dtype) == dtypes.end())
      continue;
    if (row.rank == 1) {
      trials.push_back({row, {row.config}, {}, {}, {}});
      if (!row.base_config.empty() && row.base_config != row.config) trials.back().configs.push_back(row.base_config);
    } else if (row.rank == 2 && !trials.empty()) {
      auto& configs = trials.back().configs;
      if (std::find(configs.begin(), configs.end(), row.config) == configs.end()) configs.push_back(row.config);
    }
  }
  if (trials.empty())
    throw NotFoundError(fmt::format("{} has no winners of these on {}; tune first: rowtune tune", line.database(),
                                    worker.device().model));
  return trials;
}

void hold(Trial& trial, WorkerMeasurer& worker) {
  try {
    MeasureRequest check;
    check.workload = trial.winner.workload();
    check.config = trial.winner.config;
    check.limits.max_samples = check.limits.min_samples;
    const db::Measurement m = worker.measure(check);
    if (m.outcome != Outcome::ok) throw ConfigFailure(m.outcome, m.message);
    trial.samples.resize(trial.configs.size());
    for (int i = 0; i < allocations; ++i) {
      InterleaveRequest request;
      request.workload = check.workload;
      request.configs = trial.configs;
      request.fresh_buffers = i > 0;
      request.rounds = rounds;
      request.max_seconds = seconds;
      const auto more = worker.interleave(request);
      for (std::size_t k = 0; k < more.size(); ++k)
        trial.samples[k].insert(trial.samples[k].end(), more[k].begin(), more[k].end());
    }
  } catch (const ConfigFailure& failure) {
    trial.failed = fmt::format("{}: {}", to_string(failure.outcome), failure.what());
    trial.samples.clear();
  }
}

/// Against all the others together: SLOWER than any, else UNSURE of any, else the SAME as any, else FASTER.
std::string against_all(const std::vector<std::string>& words) {
  for (const char* word : {"SLOWER", "UNSURE", "SAME"})
    if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  return words.empty() ? "SAME" : "FASTER";  // the base alone is as fast as itself
}

}  // namespace

int verify_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const bool quiet = line.get<bool>("quiet");
  const double margin = line.get<double>("margin");
  if (!(margin > 0 && margin < 1)) throw UsageError("rowtune verify: --margin must be a share between 0 and 1");
  WorkerSettings settings;
  settings.device = open_device(line.text("device"))->info().id;
  settings.timeout_seconds = parse_duration(line.text("timeout"));
  db::Database::open(line.database(), db::Database::Mode::read_only);  // a bad file is refused before a worker starts
  WorkerMeasurer worker(settings);
  std::vector<Trial> trials = trials_of(line, worker);

  reports::Sheet sheet;
  sheet.heads = {column("op"),
                 column("dtype"),
                 column("shape"),
                 column("regime"),
                 column("config"),
                 column("stored_us", "stored", Style::time),
                 column("time_us", "now", Style::time),
                 column("time_lo_us", "low", Style::time),
                 column("time_hi_us", "high", Style::time),
                 column("now_over_stored", "now / stored", Style::ratio),
                 column("against_stored", "against stored"),
                 column("base_us", "base", Style::time),
                 column("against_base", "against base"),
                 column("runner_up", "runner-up", Style::text),
                 column("runner_up_us", "runner-up", Style::time),
                 column("against_runner_up", "against runner-up"),
                 column("verdict"),
                 column("message", "", Style::text, true)};
  WorkerDevice device(worker);
  CompileAhead compiler(device);
  for (Trial& trial : trials) {
    try {
      for (const std::string& config : trial.configs)
        trial.tickets.push_back(compiler.add(trial.winner.workload(), split_config_name(config)));
    } catch (const UsageError&) {
      // a config that this version does not know: told when it is loaded
    }
  }
  const InterruptGuard interrupt;
  const auto compiled = [&](CompileAhead::Ticket ticket) { return compiler.wait(ticket, interrupt.requested()); };
  std::size_t regressions = 0, done = 0;
  for (Trial& trial : trials) {
    if (interrupt.requested() || !std::all_of(trial.tickets.begin(), trial.tickets.end(), compiled)) break;
    hold(trial, worker);
    ++done;
    const db::BestRow& w = trial.winner;
    std::vector<Cell> row{w.op, w.dtype, to_string(w.workload().shape), w.regime, w.config, *w.time_us};
    if (!trial.failed.empty()) {
      ++regressions;
      row.insert(row.end(), {Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(), Cell(),
                             std::string("FAILED"), trial.failed});
      if (!quiet) tell(fmt::format("rowtune: {} {}: {}\n", to_string(w.workload()), w.config, trial.failed));
      sheet.rows.push_back(std::move(row));
      continue;
    }
    const Estimate now = estimate_median(trial.samples[0]);
    const double each = 1 - (1 - confidence) / static_cast<double>(std::max<std::size_t>(1, trial.configs.size() - 1));
    Cell base_us, base_word, other, other_us, other_word;
    std::vector<std::string> words;
    for (std::size_t k = 1; k < trial.configs.size(); ++k) {
      const std::string word = word_of(compare_paired(trial.samples[0], trial.samples[k], margin, each).verdict);
      words.push_back(word);
      const double median_us = median(trial.samples[k]);
      if (trial.configs[k] == w.base_config) base_us = median_us, base_word = word;
      if (trial.configs[k] != w.base_config || trial.configs.size() == 2)
        other = trial.configs[k], other_us = median_us, other_word = word;
    }
    Estimate stored;
    stored.median = *w.time_us;
    stored.low = w.time_lo_us.value_or(stored.median), stored.high = w.time_hi_us.value_or(stored.median);
    const std::string against_stored = verdict_by_intervals(stored, now, margin);
    const std::string verdict = against_all(words);
    if (verdict == "SLOWER" || against_stored == "SLOWER") ++regressions;
    row.insert(row.end(), {now.median, now.low, now.high, now.median / stored.median, against_stored, base_us,
                           base_word, other, other_us, other_word, verdict, std::string()});
    sheet.rows.push_back(std::move(row));
    if (!quiet && stderr_is_terminal()) tell(fmt::format("\r{}/{}", done, trials.size()));
  }
  if (!quiet && stderr_is_terminal()) tell("\r");
  print(sheet, format);
  if (interrupt.requested()) return exit_interrupted;
  if (!quiet)
    tell(fmt::format("{} winners timed again, {} of them wrong or slower than they should be\n", done, regressions));
  return line.get<bool>("fail-on-regression") && regressions > 0 ? exit_failed : exit_done;
}

}  // namespace rowtune
