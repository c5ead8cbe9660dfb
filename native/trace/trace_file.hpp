#pragma once

#include <cstddef>
#include <cstdint>
#include <ringlet/error.hpp>
#include <string>
#include <string_view>

#include "native/given_descriptor.hpp"
#include "native/output_file.hpp"

namespace ringlet::native {

/// The file of one process: FILE with `part` before its last extension, so "trace.json" and part "3" make "trace.3.json".
std::string name_of_trace_part(const std::string& file, std::string_view part);
/// The part of a rank: "3"; of a process that joined a group later, in whose place there may have been another one, with the epoch:
/// "3.epoch2".
std::string part_of_rank(int rank, std::uint32_t joined_in_epoch);

/// Takes over a file that a launcher has opened, by GivenDescriptor::duplicate().
UniqueFd take_given_file(const GivenDescriptor& given);

/// Another process writes the file.
class TraceFileInUse final : public InvalidArgument {
 public:
  using InvalidArgument::InvalidArgument;
};

/// Who writes the trace that is locked, as its first event says: "process 4711 (train on alpha)".
std::string writer_of(const std::string& path);

/// The file for a message, with the environment's variable that named it, if one did: "'t.json' (RINGLET_TRACE)".
std::string quoted_trace(std::string_view path, std::string_view variable);

/// A JSON array that grows by lines of one event each, up to a limit of bytes; what comes then is dropped and counted. A file that was not
/// closed, since its process was killed, lacks only the end of the array, which readers of the format do without. One thread at a time.
class TraceFile {
 public:
  /// Makes the file, or empties the one that is there, and keeps other processes from doing so until it is closed. Throws `TraceFileInUse`
  /// where one of them writes it, `InvalidArgument` with the reason where it fails otherwise. `variable` is as in quoted_trace().
  TraceFile(std::string path, std::string_view variable, std::size_t most_bytes);
  /// Takes over an open file, which `name` names for people.
  TraceFile(int descriptor, std::string name, std::size_t most_bytes);

  const std::string& path() const { return path_; }
  /// Adds the lines of one event, which are kept or dropped together.
  void add(std::string_view event);
  /// Writes what add() has gathered. Returns false where that failed, now or before; error() then says why.
  bool flush();
  /// Writes the last event, also beyond the limit, and the end of the array.
  bool finish(std::string_view last_event);
  /// Gives the file another name, in place of the file that has that. Returns false, and the reason in errno, where that fails.
  bool rename(const std::string& path);
  /// Closes the file; as flush(). Without it the destructor does.
  bool close() { return file_.close(); }
  std::uint64_t dropped() const { return dropped_; }
  const std::string& error() const { return file_.error(); }

 private:
  std::string path_;
  const std::size_t most_bytes_;
  OutputFile file_;
  std::size_t bytes_ = 0;  // of all events so far
  std::uint64_t dropped_ = 0;
  std::string gathered_ = "[\n";
};

}  // namespace ringlet::native
