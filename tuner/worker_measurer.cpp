#include "tuner/worker_measurer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/errors.hpp"
#include "tuner/protocol.hpp"

namespace rowtune {
namespace {

using nlohmann::json;

/// What may have ruined the worker, or may have been the fault of what ran in it before.
bool suspicious(Outcome outcome) {
  return outcome == Outcome::crash || outcome == Outcome::timeout || outcome == Outcome::launch_error;
}

}  // namespace

WorkerMeasurer::WorkerMeasurer(WorkerSettings settings) : settings_(std::move(settings)) {
  if (settings_.program.empty()) settings_.program = own_program();
  start();
}

WorkerMeasurer::~WorkerMeasurer() = default;

void WorkerMeasurer::start() {
  std::vector<std::string> command = settings_.launcher;
  for (const std::string& word : {settings_.program, std::string("worker"), std::string("--device"), settings_.device})
    command.push_back(word);
  process_ = std::make_unique<WorkerProcess>(command);
  ++started_;
  busy_before_ += std::exchange(busy_seconds_, 0);
  std::string line;
  const auto reading = process_->read_line(line, settings_.start_seconds);
  const auto refuse = [&](const std::string& why) {
    process_.reset();
    throw EnvironmentError(fmt::format("the worker for {} {}", settings_.device, why));
  };
  if (reading == WorkerProcess::Reading::timeout)
    refuse(fmt::format("did not answer within {:.0f} s", settings_.start_seconds));
  if (reading == WorkerProcess::Reading::closed) refuse(process_->obituary() + " before it said a word");
  const json hello = json::parse(line, nullptr, false);
  if (hello.is_object() && hello.contains("error")) refuse("could not begin: " + hello["error"].get<std::string>());
  if (!hello.is_object() || hello.value("worker", 0) != worker_protocol)
    refuse(fmt::format("is another program or version: it began with '{}'", line.substr(0, 80)));
  try {
    const DeviceInfo found = device_from(hello.at("device"));
    if (started_ > 1 && (found.model != device_.model || found.limits != device_.limits))
      refuse(fmt::format("is now on {}, and was on {}", found.model, device_.model));
    device_ = found;
    provenance_ = provenance_from(hello.at("provenance"));
    for (Operation op : all_operations()) fingerprints_[op] = hello.at("fingerprints").at(to_string(op));
  } catch (const json::exception& error) {
    refuse(fmt::format("is another version: {}", error.what()));
  }
}

void WorkerMeasurer::retire() {
  if (process_) process_->end();
  process_.reset();
}

/// Throws ConfigFailure(timeout or crash) when no answer comes; the worker is retired then.
json WorkerMeasurer::ask(const json& request, double seconds) {
  if (!process_) start();
  std::string line;
  const bool heard = process_->send(line_of(request));
  const auto reading = heard ? process_->read_line(line, seconds) : WorkerProcess::Reading::closed;
  const auto fail = [this](Outcome outcome, const std::string& what) {
    retire();
    throw ConfigFailure(outcome, what);
  };
  if (reading == WorkerProcess::Reading::timeout)
    fail(Outcome::timeout, fmt::format("did not end within {:.0f} s; its worker was killed", seconds));
  if (reading == WorkerProcess::Reading::closed)
    fail(Outcome::crash, fmt::format("its worker {}", process_->obituary()));
  json answer = json::parse(line, nullptr, false);
  if (!answer.is_object())
    fail(Outcome::crash, fmt::format("its worker answered with something that is no answer: '{}'", line.substr(0, 80)));
  if (answer.contains("error")) {
    const std::string why = answer["error"].get<std::string>();
    retire();
    throw EnvironmentError(fmt::format("the worker for {} gave up: {}", settings_.device, why));
  }
  open_seconds_ = answer.value("open_seconds", open_seconds_);
  busy_seconds_ = answer.value("busy_seconds", busy_seconds_);
  return answer;
}

db::Measurement WorkerMeasurer::try_once(const MeasureRequest& request) {
  try {
    const json answer = ask(to_json(request), settings_.timeout_seconds);
    return measurement_from(answer.at("measurement"));
  } catch (const json::exception& error) {
    retire();
    throw ConfigFailure(Outcome::crash, fmt::format("its worker gave an answer that cannot be read: {}", error.what()));
  } catch (const UsageError& error) {
    retire();
    throw ConfigFailure(Outcome::crash, fmt::format("its worker gave an answer that cannot be read: {}", error.what()));
  }
}

db::Measurement WorkerMeasurer::measure(const MeasureRequest& request) {
  const auto attempt = [&](int which) {
    MeasureRequest tried = request;
    tried.attempt = which;
    db::Measurement m;
    try {
      m = try_once(tried);
    } catch (const ConfigFailure& failure) {
      m = describe_config(device_, fingerprints_.at(request.workload.op), provenance_, request);
      m.outcome = failure.outcome;
      m.message = failure.what();
    }
    if (suspicious(m.outcome)) retire();
    return m;
  };
  db::Measurement first = attempt(1);
  if (!suspicious(first.outcome)) return first;
  db::Measurement second = attempt(2);
  return suspicious(second.outcome) ? first : second;
}

/// Throws the ConfigFailure that the worker tells of.
json WorkerMeasurer::ask_about_configs(const json& request, double seconds) {
  json answer = ask(request, seconds);
  if (!answer.contains("failure")) return answer;
  const Outcome outcome = parse_outcome(answer["failure"].at("outcome"));
  const std::string what = answer["failure"].at("message");
  if (suspicious(outcome)) retire();
  throw ConfigFailure(outcome, what);
}

std::vector<std::vector<double>> WorkerMeasurer::interleave(const InterleaveRequest& request) {
  const json answer = ask_about_configs(to_json(request), settings_.timeout_seconds + request.max_seconds);
  auto samples = answer.at("samples").get<std::vector<std::vector<double>>>();
  if (samples.size() != request.configs.size() || samples.front().empty())
    throw ConfigFailure(Outcome::crash, "its worker gave an answer that does not fit the question");
  return samples;
}

std::vector<std::optional<double>> WorkerMeasurer::energy(const EnergyRequest& request) {
  const double seconds = settings_.timeout_seconds + 2 * request.seconds * static_cast<double>(request.configs.size());
  auto joules = numbers_from(ask_about_configs(to_json(request), seconds).at("joules"));
  joules.resize(request.configs.size());
  return joules;
}

void WorkerMeasurer::release() {
  if (!process_) return;
  try {
    ask({{"do", "release"}}, settings_.timeout_seconds);
  } catch (const ConfigFailure&) {
    // the worker is gone, and its buffers with it
  }
}

}  // namespace rowtune
