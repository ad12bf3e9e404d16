#include "db/open.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <vector>

#include "db/transaction.hpp"

namespace rowtune::db {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw EnvironmentError(fmt::format("database '{}': {}", path, what));
}

bool accessible(const fs::path& path, int how) { return faccessat(AT_FDCWD, path.c_str(), how, AT_EACCESS) == 0; }

fs::path folder_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

/// Size of the file; -1 when there is none. Refuses what is no readable regular file.
std::int64_t size_on_disk(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return -1;
    refuse(path, fmt::format("cannot be looked at: {}", std::strerror(errno)));
  }
  if (S_ISDIR(info.st_mode)) refuse(path, "is a folder; name a file in it");
  if (!S_ISREG(info.st_mode)) refuse(path, "is not a regular file");
  if (!accessible(path, R_OK)) refuse(path, "cannot be read: permission denied; change its permissions with chmod");
  return info.st_size;
}

void check_writable(const std::string& path, bool exists) {
  const auto folder = folder_of(path);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    refuse(path, fmt::format("its folder '{}' does not exist; create it first", folder.string()));
  if (exists && !accessible(path, W_OK))
    refuse(path, "is read-only; make it writable (chmod u+w) or name another file with --db");
  if (!accessible(folder, W_OK | X_OK))
    refuse(path, fmt::format("its folder '{}' is read-only, and SQLite needs to write beside the file; make it "
                             "writable or name another file with --db",
                             folder.string()));
}

/// What the first bytes say. application_id is written with the schema in one rollback-journal transaction, so it is
/// in the file itself, never only in a log beside it.
struct Header {
  bool is_sqlite = false;
  bool is_ours = false;
  bool has_log = false;  ///< write-ahead log mode
};

/// Through SQLite's own file layer: POSIX drops all locks that a process holds on a file when any descriptor of it is
/// closed, and a writer of this process that lost its lock loses its log to the next process that closes the file.
/// SQLite puts such a close off.
Header header_of(const std::string& path) {
  std::array<char, 72> bytes{};
  sqlite3_vfs* layer = sqlite3_vfs_find(nullptr);
  std::vector<std::max_align_t> room(layer->szOsFile / sizeof(std::max_align_t) + 1);
  auto* file = reinterpret_cast<sqlite3_file*>(room.data());
  const std::string name = fs::absolute(path).string();
  if (layer->xOpen(layer, name.c_str(), file, SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB, nullptr) == SQLITE_OK)
    file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0);  // zeros where the file is shorter
  if (file->pMethods != nullptr) file->pMethods->xClose(file);
  const auto byte = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(bytes[i])); };
  Header header;
  header.is_sqlite = std::string_view(bytes.data(), 16) == std::string_view("SQLite format 3\0", 16);
  header.is_ours = header.is_sqlite && (byte(68) << 24 | byte(69) << 16 | byte(70) << 8 | byte(71)) == application_id;
  header.has_log = byte(18) == 2;
  return header;
}

bool log_in_use(const std::string& path) {
  std::error_code none;
  const auto bytes = fs::file_size(path + "-wal", none);
  return !none && bytes > 0;
}

/// A file:// name for SQLite, special characters escaped.
std::string uri_of(const std::string& path, const char* parameters) {
  std::string uri = "file:";
  for (const char c : fs::absolute(path).string()) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      uri += c;
  }
  return uri + parameters;
}

/// Refuses, through a connection that cannot write, somebody else's database. An empty one may become ours.
void check_not_foreign(const std::string& path, const Header& header, const Settings& settings) {
  bool empty = false;
  if (!(header.has_log && log_in_use(path))) {
    // Immutable: the file alone is the whole truth, and nothing is made beside it, as reading through a log would.
    SQLite::Database probe(uri_of(path, header.has_log ? "?immutable=1" : ""), SQLite::OPEN_READONLY | SQLite::OPEN_URI,
                           settings.busy_timeout_ms);
    const int id = probe.execAndGet("PRAGMA application_id").getInt();
    const int objects = probe.execAndGet("SELECT count(*) FROM sqlite_schema").getInt();
    empty = id == application_id || (id == 0 && objects == 0);  // ours: another process made it just now
  }
  if (!empty) refuse(path, "is a database of another program (no rowtune application id); name another file with --db");
}

void check_version(SQLite::Database& db, const std::string& path, Database::Mode mode, int newest) {
  const int id = db.execAndGet("PRAGMA application_id").getInt();
  const int version = db.execAndGet("PRAGMA user_version").getInt();
  if (version > newest)
    refuse(path, fmt::format("has schema {}, and this rowtune knows up to {}: it was written by a newer rowtune; use "
                             "that one, or name another file with --db",
                             version, newest));
  if (mode == Database::Mode::read_only && id != application_id)
    refuse(path, "is empty: nothing was tuned into it yet; run `rowtune tune --db FILE` first");
  if (mode == Database::Mode::read_only && version < newest)
    refuse(path, fmt::format("has the older schema {}; a command that writes, such as `rowtune tune`, brings it to {}",
                             version, newest));
}

void choose_journal(SQLite::Database& db, const std::string& path) {
  struct statfs info {};
  const bool wal = statfs(path.c_str(), &info) == 0 && allows_write_ahead_log(info.f_type);
  try {
    // Another process that is reading right now keeps the mode as it is; either mode is correct.
    const auto mode = db.execAndGet(wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE").getString();
    db.exec(mode == "wal" ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
  } catch (const SQLite::Exception&) {
    db.tryExec("PRAGMA journal_mode = DELETE");
    db.exec("PRAGMA synchronous = FULL");
  }
}

SQLite::Database open_checked(const std::string& path, Database::Mode mode, const Settings& settings,
                              const std::vector<Migration>& list) {
  if (path.empty()) throw EnvironmentError("database: the file name is empty");
  const auto size = size_on_disk(path);
  const bool writing = mode == Database::Mode::read_write;
  if (writing) check_writable(path, size >= 0);
  if (!writing && size < 0)
    refuse(path, "does not exist; `rowtune tune --db FILE` makes one, or name another file with --db");
  if (size > 0) {
    const auto header = header_of(path);
    if (!header.is_sqlite)
      refuse(path, "is not a database (its first bytes are not SQLite's); name another file with --db");
    if (!header.is_ours) check_not_foreign(path, header, settings);
  }
  if (!writing) {
    // A connection that could write cleans its log's files up when it closes; one that cannot leaves them lying.
    const bool tidy = accessible(path, W_OK) && accessible(folder_of(path), W_OK);
    SQLite::Database db(reader_uri(path, tidy),
                        (tidy ? SQLite::OPEN_READWRITE : SQLite::OPEN_READONLY) | SQLite::OPEN_URI,
                        settings.busy_timeout_ms);
    sqlite3_db_config(db.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, log_in_use(path), nullptr);
    db.exec("PRAGMA query_only = ON");
    check_version(db, path, mode, list.back().version);
    return db;
  }
  {
    // A newer file must stay as it is, so look before a connection that writes can fold its log.
    SQLite::Database probe(uri_of(path, "?mode=rwc"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_URI,
                           settings.busy_timeout_ms);
    sqlite3_db_config(probe.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, log_in_use(path), nullptr);
    check_version(probe, path, mode, list.back().version);
  }
  SQLite::Database db(uri_of(path, ""), SQLite::OPEN_READWRITE | SQLite::OPEN_URI, settings.busy_timeout_ms);
  if (settings.max_pages > 0) db.execAndGet(fmt::format("PRAGMA max_page_count = {}", settings.max_pages));
  db.exec("PRAGMA foreign_keys = ON");
  migrate(db, list, create_views);
  choose_journal(db, path);
  return db;
}

}  // namespace

std::string reader_uri(const std::string& path, bool tidy) {
  // Reading through a log takes a shared-memory file, which cannot be made in a folder that cannot be written.
  const bool immutable = !accessible(folder_of(path), W_OK) && !log_in_use(path);
  return uri_of(path, immutable ? "?immutable=1" : tidy ? "?mode=rw" : "?mode=ro");
}

bool allows_write_ahead_log(long filesystem_type) {
  // From statfs(2) and the kernel's magic.h: NFS, SMB, CIFS, SMB2, 9p, FUSE (sshfs...), AFS, Ceph, Lustre, GPFS, Coda.
  constexpr std::array<std::uint32_t, 11> network{0x6969,     0x517B,     0xFF534D42, 0xFE534D42,
                                                  0x01021997, 0x65735546, 0x5346414F, 0x00C36400,
                                                  0x0BD00BD0, 0x47504653, 0x73757245};
  return std::find(network.begin(), network.end(), static_cast<std::uint32_t>(filesystem_type)) == network.end();
}

SQLite::Database open_connection(const std::string& path, Database::Mode mode, const Settings& settings,
                                 const std::vector<Migration>& list) {
  return guarded(path, "opening", [&] { return open_checked(path, mode, settings, list); });
}

void throw_unknown_word(const std::string& path, const UsageError& error) {
  refuse(path, fmt::format("holds an {}: it is damaged, or was written by a newer rowtune", error.what()));
}

void throw_environment_error(const std::string& path, const std::string& doing, const SQLite::Exception& error,
                             const std::string& saved) {
  const auto safe = saved.empty() ? std::string() : fmt::format(" ({})", saved);
  const auto say = [&](const std::string& what) {
    throw EnvironmentError(fmt::format("database '{}': {}: {}{}", path, doing, what, safe));
  };
  switch (error.getErrorCode() & 0xFF) {
    case SQLITE_FULL:
      say("the disk is full; free some space and run the same command again, it goes on where it stopped");
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      say("another process keeps it locked; wait for it to end, then run the same command again");
      break;
    case SQLITE_CORRUPT:
      say(
          fmt::format("the file is damaged ({}); it may have been cut short by a copy. Take it from a backup, or "
                      "`sqlite3 FILE .recover` what is left",
                      error.what()));
      break;
    case SQLITE_NOTADB:
      say("it is not a database; name another file with --db");
      break;
    case SQLITE_READONLY:
      say(fmt::format("it cannot be written ({}); make the file and its folder writable", error.what()));
      break;
    case SQLITE_IOERR:
      say(fmt::format("reading or writing failed ({}: {}); check the disk", error.what(), std::strerror(errno)));
      break;
    default:
      say(error.what());
  }
  throw EnvironmentError(error.what());  // not reached: `say` throws
}

}  // namespace rowtune::db
