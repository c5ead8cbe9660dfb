#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace train_text {

/// A log beside the training, which is worth more: what cannot be written is told once on stderr, and the training goes on without it.
class LogFile {
 public:
  /// Opens the file of an option such as "--log-losses" before the training begins. Throws `InputError` if it cannot be written.
  void open(const std::filesystem::path& path, const char* option, bool appends);
  /// Opens it while or after the ranks train, so it does not throw.
  void open_late(const std::filesystem::path& path, const char* option, bool appends);
  /// Nothing happens where it is not open.
  void write(std::string_view line);
  void close();
  /// Whether another process has written to it since this one did. Costs a call of the system.
  bool has_grown() const;
  bool is_open() const { return file_ != nullptr; }
  /// Whether something could not be written.
  bool has_failed() const { return has_failed_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  /// Returns an errno, or 0 if it is open now.
  int try_open(const std::filesystem::path& path, const char* option, bool appends);
  void give_up(int error);

  std::unique_ptr<std::FILE, Closer> file_;
  std::filesystem::path path_;
  std::string name_;
  std::uintmax_t end_ = 0;  // of what has been written, or was there
  bool has_failed_ = false;
};

/// How a process has come to the ranks that train.
enum class Arrival : std::uint8_t {
  first,  // it was there when they began
  later,  // it has joined them
  again,  // so, and its launcher has started it again: what it wrote before is still there
};

/// The file that a process has for itself beside those of other ranks: `log` with the number behind it that its launcher has given it,
/// which stays its own where ranks are numbered anew; without a launcher its rank. One that comes later has its rank and the epoch there.
std::filesystem::path own_file(const std::filesystem::path& log, int rank, int epoch, Arrival arrival);

}  // namespace train_text
