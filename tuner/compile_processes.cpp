#include "tuner/compile_processes.hpp"

#include <sys/resource.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/cuda/cuda_device.hpp"
#include "kernels/errors.hpp"

namespace rowtune {

std::unique_ptr<WorkerProcess> CompileProcesses::take() {
  {
    const std::lock_guard lock(mutex_);
    if (useless_) return nullptr;
    if (!idle_.empty()) {
      auto process = std::move(idle_.back());
      idle_.pop_back();
      return process;
    }
  }
  try {
    return std::make_unique<WorkerProcess>(command_);
  } catch (const EnvironmentError&) {
    return nullptr;
  }
}

bool CompileProcesses::compile(const std::string& source) {
  auto process = take();
  if (!process) return false;
  std::string answer;
  const bool heard = process->send(nlohmann::json(source).dump());
  const auto reading = heard ? process->read_line(answer, seconds_of_one) : WorkerProcess::Reading::closed;
  if (reading != WorkerProcess::Reading::line) process->end();  // it hangs, or the compiler took it down
  const std::lock_guard lock(mutex_);
  if (reading == WorkerProcess::Reading::line) {
    any_answered_ = true;
    idle_.push_back(std::move(process));
    return true;
  }
  if (!any_answered_ && reading == WorkerProcess::Reading::closed) useless_ = true;
  return any_answered_;
}

int serve_as_compiler(int architecture) {
  setpriority(PRIO_PROCESS, 0, 10);  // the worker that measures goes first
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.architecture = architecture;
  const auto compiler = cuda::open_cuda_compiler(info);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      compiler->compile(nlohmann::json::parse(line).get<std::string>());
    } catch (const ConfigFailure&) {
      // told when the config is loaded
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

}  // namespace rowtune
