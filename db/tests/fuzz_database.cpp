// Database files that are damaged or foreign: opening to read and to write, every read, a write, and merging.
//
// An input is a letter and what to do to a sound file. `b`: records of four bytes, each an offset (24 bits, modulo the
// file's size) and the byte to put there. `c`: a size (24 bits) to cut the file to, then records as for `b`. `s`: SQL
// to run on it. `f`: the rest is the file.

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "db/database.hpp"
#include "db/tests/measurements.hpp"
#include "kernels/tests/fuzz.hpp"

using namespace rowtune;
using db::Database;

namespace {

namespace fs = std::filesystem;

/// A folder of this process, in memory where there is such a filesystem.
struct Folder {
  fs::path path;
  Folder() {
    const fs::path root = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = (root / "rowtune-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void write_file(const fs::path& path, std::string_view content) {
  for (const char* beside : {"-wal", "-shm", "-journal"}) fs::remove(path.string() + beside);
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(content.data(), std::streamsize(content.size()));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& sound_file() {
  static const std::string content = [] {
    const Folder folder;
    const fs::path path = folder.path / "sound.db";
    db::test::make_sound_file(path.string());
    return read_file(path);
  }();
  return content;
}

std::uint32_t number24(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(bytes[i])); };
  return at(0) << 16 | at(1) << 8 | at(2);
}

void patch(std::string& file, std::string_view records) {
  for (; records.size() >= 4 && !file.empty(); records.remove_prefix(4))
    file[number24(records) % file.size()] = records[3];
}

/// As somebody else's program might leave the file. Statements that fail are no matter.
void run_sql(const fs::path& path, const std::string& sql) {
  write_file(path, sound_file());
  SQLite::Database db(path.string(), SQLite::OPEN_READWRITE);
  sqlite3_limit(db.getHandle(), SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db.getHandle(), SQLITE_LIMIT_LENGTH, 1 << 20);
  int steps = 0;
  sqlite3_progress_handler(
      db.getHandle(), 1000, [](void* n) { return int(++*static_cast<int*>(n) > 1000); }, &steps);
  db.tryExec("PRAGMA foreign_keys = OFF");
  db.tryExec(sql);
}

template <class F>
void attempt(F f) {
  try {
    f();
  } catch (const EnvironmentError&) {
  } catch (const NotFoundError&) {
  }
}

void use(const std::string& path, Database::Mode mode) {
  attempt([&] {
    db::Settings settings;
    settings.busy_timeout_ms = 0;
    settings.max_pages = 1000;
    auto file = Database::open(path, mode, settings);
    const auto key = db::test::key_of(db::test::softmax());
    attempt([&] { file.measurement_count(); });
    attempt([&] { file.recorded_configs(key); });
    attempt([&] { file.measurements(key); });
    attempt([&] { file.decision(key); });
    attempt([&] {
      for (const auto& row : file.leaderboard({})) attempt([&] { row.workload(); });
    });
    db::BestQuery filtered;
    filtered.max_error_ulp = 1, filtered.uuid = "GPU-1";
    attempt([&] { file.best(filtered); });
    attempt([&] { file.failures(); });
    attempt([&] { file.coverage(); });
    attempt([&] { file.accuracy(); });
    attempt([&] { file.baselines(); });
    attempt([&] { file.stability(false); });
    if (mode == Database::Mode::read_only) return;
    attempt([&] { file.begin_sweep(key, 3); });
    attempt([&] { file.record(db::test::measured(db::test::softmax(), "block.b64.r1.v8.s1", 7), true); });
  });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  if (size == 0) return 0;
  const std::string path = (folder.path / "input.db").string();
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  std::string file = sound_file();
  switch (data[0]) {
    case 'c':
      if (rest.size() < 3) return 0;
      file.resize(number24(rest) % (file.size() + 1));
      rest.remove_prefix(3);
      [[fallthrough]];
    case 'b':
      patch(file, rest);
      break;
    case 's':
      run_sql(path, std::string(rest));
      file = read_file(path);
      break;
    case 'f':
      file = rest;
      break;
    default:
      return 0;
  }
  write_file(path, file);
  use(path, Database::Mode::read_only);
  {
    const fs::path into = folder.path / "into.db";
    write_file(into, sound_file());
    attempt([&] { Database::open(into.string(), Database::Mode::read_write).merge_from(path); });
  }
  use(path, Database::Mode::read_write);
  return 0;
}
