#pragma once
// The worker's side of the line protocol (protocol.hpp): measures on one device until its input closes.

#include <functional>
#include <memory>
#include <string>

#include "kernels/device.hpp"

namespace rowtune {

/// Answers requests until standard input closes. What anything else prints to standard output goes to standard error:
/// the protocol has it for itself. Returns an exit code.
int serve_as_worker(const std::string& device);
/// The same on a device that `open` gives.
int serve_as_worker(const std::function<std::unique_ptr<Device>()>& open);

}  // namespace rowtune
