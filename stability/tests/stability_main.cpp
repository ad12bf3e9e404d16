// The command by itself, as the program's main calls it: for tests that look at exit codes and streams.

#include <cstdio>
#include <exception>

#include "kernels/errors.hpp"
#include "stability/command.hpp"

int main(int argc, char** argv) {
  const auto failed = [](const std::exception& e, int code) {
    std::fprintf(stderr, "rowtune: %s\n", e.what());
    return code;
  };
  try {
    return rowtune::stability_command(argc, argv);
  } catch (const rowtune::UsageError& e) {
    return failed(e, 2);
  } catch (const rowtune::EnvironmentError& e) {
    return failed(e, 3);
  } catch (const std::exception& e) {
    return failed(e, 1);
  }
}
