#include "tuner/compile_processes.hpp"

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
    auto process = std::make_unique<WorkerProcess>(command_);
    std::string ready;
    if (process->read_line(ready, seconds_to_start) == WorkerProcess::Reading::line) return process;
    process->end();
  } catch (const EnvironmentError&) {
    // told by what follows: the caller compiles
  }
  const std::lock_guard lock(mutex_);
  useless_ = true;
  return nullptr;
}

bool CompileProcesses::compile(const std::string& source) {
  auto process = take();
  if (!process) return false;
  std::string answer;
  if (process->send(nlohmann::json(source).dump()) &&
      process->read_line(answer, seconds_of_one) == WorkerProcess::Reading::line) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(process));
  } else {
    process->end();  // it hangs, or the compiler took it down
  }
  return true;
}

int serve_as_compiler(int architecture) {
  DeviceInfo info;
  info.kind = DeviceKind::cuda;
  info.architecture = architecture;
  const auto compiler = cuda::open_cuda_compiler(info);
  std::cout << "ready" << std::endl;
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
