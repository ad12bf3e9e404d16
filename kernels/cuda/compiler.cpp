#include "kernels/cuda/compiler.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "kernels/cuda/sources.hpp"

namespace rowtune::cuda {

namespace fs = std::filesystem;

/// The few functions of NVRTC, by dlopen: the program starts where there is no toolkit.
struct Compiler::Library {
  void* handle = nullptr;
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetErrorString) error = nullptr;
  int major = 0, minor = 0;

  Library() {
    std::string tried;
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so.13",
                             "/usr/local/cuda/lib64/libnvrtc.so"}) {
      handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle) break;
      tried += fmt::format("{}{}", tried.empty() ? "" : ", ", name);
    }
    if (!handle)
      throw EnvironmentError(
          fmt::format("NVRTC, the run-time compiler of the CUDA Toolkit, is not here (looked for {}); "
                      "install the CUDA Toolkit 12.8 or newer, or set LD_LIBRARY_PATH to where it is",
                      tried));
    find("nvrtcVersion", version);
    find("nvrtcCreateProgram", create);
    find("nvrtcCompileProgram", compile);
    find("nvrtcDestroyProgram", destroy);
    find("nvrtcGetProgramLogSize", log_size);
    find("nvrtcGetProgramLog", log);
    find("nvrtcGetCUBINSize", cubin_size);
    find("nvrtcGetCUBIN", cubin);
    find("nvrtcGetErrorString", error);
    check(version(&major, &minor), "nvrtcVersion");
  }
  ~Library() {
    if (handle) dlclose(handle);
  }

  template <class F>
  void find(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (!function) throw EnvironmentError(fmt::format("the NVRTC found here lacks {}: it is too old or damaged", name));
  }
  void check(nvrtcResult result, const char* what) const {
    if (result != NVRTC_SUCCESS) throw EnvironmentError(fmt::format("{} failed: {}", what, error(result)));
  }
};

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// An entry is: magic, length of the key, length of the cubin, hash of the cubin, key, cubin.
constexpr std::string_view magic = "rowtune-cubin-1";

std::string entry_of(const std::string& key, const std::string& cubin) {
  return fmt::format("{}\n{}\n{}\n{}\n", magic, key.size(), cubin.size(), fingerprint_of(cubin)) + key + cubin;
}

/// The cubin, or an empty string when the entry is not whole or is another's.
std::string cubin_of(const std::string& entry, const std::string& key) {
  // The header is made again for the cubin that would fill the rest: equal bytes mean a whole entry.
  std::size_t at = 0;
  for (int newlines = 0; at < entry.size() && newlines < 4; ++at) newlines += entry[at] == '\n';
  if (entry.size() < at + key.size()) return {};
  const std::string cubin = entry.substr(at + key.size());
  return !cubin.empty() && entry == entry_of(key, cubin) ? cubin : std::string();
}

void write_entry(const fs::path& path, const std::string& entry) {
  static std::atomic<unsigned> serial{0};
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path temporary = fmt::format("{}.{}.{}", path.string(), getpid(), serial++);
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(entry.data(), static_cast<std::streamsize>(entry.size()));
    if (!out.flush()) {
      fs::remove(temporary, ignored);
      return;  // a full disk costs a compilation next time, nothing else
    }
  }
  fs::rename(temporary, path, ignored);
  if (ignored) fs::remove(temporary, ignored);
}

}  // namespace

fs::path Compiler::default_cache() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value ? value : "";
  };
  if (const auto own = variable("ROWTUNE_CACHE"); !own.empty()) return own;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "rowtune";
  if (const auto home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "rowtune";
  return {};
}

Compiler::Compiler(fs::path cache_directory)
    : library_(std::make_unique<Library>()), cache_(std::move(cache_directory)) {
  identity_ = version() + '\n';
  for (const auto& source : embedded_sources())
    identity_ += fmt::format("{} {}\n", source.name, fingerprint_of(source.text));
}

Compiler::~Compiler() = default;

std::string Compiler::version() const { return fmt::format("NVRTC {}.{}", library_->major, library_->minor); }

Binary Compiler::compile(const std::string& source, int architecture, bool verbose_ptxas) const {
  std::vector<std::string> flags = compile_flags();
  flags.push_back(fmt::format("--gpu-architecture=sm_{}", architecture));
  std::string key = identity_ + source;
  for (const auto& flag : flags) key += flag + '\n';
  const fs::path path = cache_.empty() ? fs::path() : cache_ / (fingerprint_of(key) + ".cubin");
  Binary binary;
  if (!path.empty() && !verbose_ptxas) {
    binary.cubin = cubin_of(read_file(path), key);
    if (!binary.cubin.empty()) {
      binary.cached = true;
      binary.hash = fingerprint_of(binary.cubin);
      return binary;
    }
  }
  if (verbose_ptxas) flags.push_back("--ptxas-options=-v");

  std::vector<const char*> texts, names, options;
  for (const auto& header : embedded_sources()) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  for (const auto& flag : flags) options.push_back(flag.c_str());
  nvrtcProgram program = nullptr;
  library_->check(library_->create(&program, source.c_str(), "rowtune_kernel.cu", static_cast<int>(texts.size()),
                                   texts.data(), names.data()),
                  "nvrtcCreateProgram");
  struct Destroy {
    const Library& library;
    nvrtcProgram& program;
    ~Destroy() { library.destroy(&program); }
  } destroy{*library_, program};
  const nvrtcResult result = library_->compile(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  library_->log_size(program, &size);
  binary.log.resize(size);
  if (size > 0) library_->log(program, binary.log.data());
  while (!binary.log.empty() && (binary.log.back() == '\0' || binary.log.back() == '\n')) binary.log.pop_back();
  if (result != NVRTC_SUCCESS) {
    const auto at = binary.log.find("error");
    const auto begin = at == std::string::npos ? 0 : binary.log.rfind('\n', at) + 1;
    throw ConfigFailure(Outcome::compile_error, fmt::format("{} for sm_{}: {}: {}", version(), architecture,
                                                            library_->error(result), binary.log.substr(begin, 600)));
  }
  library_->check(library_->cubin_size(program, &size), "nvrtcGetCUBINSize");
  binary.cubin.resize(size);
  library_->check(library_->cubin(program, binary.cubin.data()), "nvrtcGetCUBIN");
  binary.hash = fingerprint_of(binary.cubin);
  if (!path.empty()) write_entry(path, entry_of(key, binary.cubin));
  return binary;
}

}  // namespace rowtune::cuda
