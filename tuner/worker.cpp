#include "tuner/worker.hpp"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "kernels/faults.hpp"
#include "tuner/cli.hpp"
#include "tuner/identity.hpp"
#include "tuner/measure.hpp"
#include "tuner/protocol.hpp"

namespace rowtune {
namespace {

using nlohmann::json;

/// Reads on a thread of its own, so that a worker whose kernel never ends still goes when the program that started it
/// has gone.
class Requests {
 public:
  Requests() {
    std::thread([this] { read(); }).detach();
  }
  /// False when the input has closed.
  bool next(std::string& line) {
    std::unique_lock lock(mutex_);
    busy_ = false;
    changed_.wait(lock, [this] { return closed_ || !lines_.empty(); });
    if (lines_.empty()) return false;
    line = std::move(lines_.front());
    lines_.pop_front();
    busy_ = true;
    return true;
  }

 private:
  void read() {
    for (std::string line; std::getline(std::cin, line);) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line));
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    if (busy_) _exit(exit_done);  // nobody is left to hear the answer
    closed_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool closed_ = false, busy_ = false;
};

class Answers {
 public:
  Answers() : output_(dup(STDOUT_FILENO)) { dup2(STDERR_FILENO, STDOUT_FILENO); }
  void send(const json& message) { write_all(line_of(message) + '\n'); }
  void write_all(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t n = write(output_, text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) _exit(exit_environment);  // the reader has gone
      at += static_cast<std::size_t>(n);
    }
  }

 private:
  int output_;
};

/// Faults of the process itself; those of CUDA kernels are planted where they are made.
void suffer(const std::string& config, int attempt, const DeviceInfo& device, Answers& answers) {
  const Fault fault = fault_of(config, attempt);
  const bool in_kernel = fault == Fault::wrong_result || fault == Fault::compile_error;
  if (in_kernel && device.kind == DeviceKind::cuda) return;
  switch (fault) {
    case Fault::crash:
      raise(SIGSEGV);
      break;
    case Fault::kill:
      raise(SIGKILL);
      break;
    case Fault::leave:
      _exit(7);
    case Fault::stall:
      while (true) pause();
    case Fault::garbage:
      answers.write_all("\x01 this is no answer {\n");
      break;
    case Fault::wrong_result:
      throw ConfigFailure(Outcome::wrong_result, "injected: the result is wrong");
    case Fault::compile_error:
      throw ConfigFailure(Outcome::compile_error, "injected: the source does not compile");
    default:
      break;
  }
}

json measure(DeviceMeasurer& measurer, const json& message, const DeviceInfo& device, Answers& answers) {
  const MeasureRequest request = measure_request_from(message);
  db::Measurement m;
  try {
    suffer(request.config, request.attempt, device, answers);
    m = measurer.measure(request);
  } catch (const ConfigFailure& injected) {
    m = measurer.describe(request);
    m.outcome = injected.outcome;
    m.message = injected.what();
  }
  return {{"measurement", to_json(m)}};
}

json answer(DeviceMeasurer& measurer, const std::string& line, const DeviceInfo& device, Answers& answers) {
  const json message = json::parse(line);
  const std::string what = message.at("do");
  json reply = json::object();
  if (what == "measure") {
    reply = measure(measurer, message, device, answers);
  } else if (what == "interleave" || what == "energy") {
    try {
      if (what == "energy") {
        reply["joules"] = to_json(measurer.energy(energy_request_from(message)));
      } else {
        const InterleaveRequest request = interleave_request_from(message);
        for (const std::string& config : request.configs) suffer(config, 1, device, answers);
        reply["samples"] = measurer.interleave(request);
      }
    } catch (const ConfigFailure& failure) {
      reply["failure"] = {{"outcome", to_string(failure.outcome)}, {"message", failure.what()}};
    }
  } else if (what == "release") {
    measurer.release();
  } else {
    throw UsageError("unknown request '" + what + "'");
  }
  reply["open_seconds"] = measurer.open_seconds();
  reply["busy_seconds"] = measurer.busy_seconds();
  return reply;
}

}  // namespace

int serve_as_worker(const std::string& id) {
  return serve_as_worker([&id] { return open_device(id); });
}

int serve_as_worker(const std::function<std::unique_ptr<Device>()>& open) {
  Answers answers;
  Requests requests;
  try {
    const std::unique_ptr<Device> device = open();
    DeviceMeasurer measurer(*device);
    json fingerprints;
    for (Operation op : all_operations()) fingerprints[to_string(op)] = device->source_fingerprint(op);
    answers.send({{"worker", worker_protocol},
                  {"device", to_json(device->info())},
                  {"provenance", to_json(measurer.provenance())},
                  {"fingerprints", fingerprints}});
    for (std::string line; requests.next(line);) answers.send(answer(measurer, line, device->info(), answers));
  } catch (const std::exception& error) {  // the device is gone, or the program that asks is another version
    answers.send({{"error", error.what()}});
    return exit_environment;
  }
  return exit_done;
}

}  // namespace rowtune
