#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "native/output_file.hpp"
#include "tools/trace/merge.hpp"
#include "tools/trace/unfinished_file.hpp"

namespace ringlet::trace {

/// The rank's process that was started after so many others.
struct RankProcess {
  std::uint32_t rank = 0, restarts = 0;
  auto operator<=>(const RankProcess&) const = default;
};

/// The parts of a trace while they come from the machines of a job: files beside the one that they will be merged into, "trace.3.json" of
/// rank 3, and "trace.3.start1.json" of the process that was started in its place after one other. What an earlier run left there is
/// replaced, but not what another process is writing. No other process makes a trace of this name as long as this object exists.
class PartFiles {
 public:
  /// Throws `std::runtime_error` where the file could not be written; it is looked for before anything is traced.
  explicit PartFiles(const std::string& file) : file_(file), merged_(file) {}

  const std::string& file() const { return file_; }
  /// Appends to the part of a process; no bytes: that was all. Where it fails, error_of() says so.
  void add(const RankProcess& process, std::string_view bytes);
  bool empty() const { return parts_.empty(); }
  /// Whether all of this process has come, which may be nothing.
  bool is_whole(const RankProcess& process) const { return whole_.contains(process); }
  /// How much of this process has come and stands in its part.
  std::uint64_t bytes_of(const RankProcess& process) const;
  /// Why more of it does not stand there; empty where nothing has failed until now, or until close().
  std::string error_of(const RankProcess& process) const;
  /// Nothing more comes.
  void close();
  /// The processes of which something was written: the parts that merge() takes, in their order.
  std::vector<RankProcess> processes() const;
  /// Makes the one file of what was written, and removes the parts. Throws as merge_traces(), or where nothing could be written; then the
  /// parts stay. Once.
  Merged merge(const MergeWatch& watch = {});

 private:
  struct Part {
    std::string path{};
    native::OutputFile file{};
    std::uint64_t bytes = 0;  // written
    std::string error{};
  };

  void open(const RankProcess& process, Part& part) const;
  static void close(Part& part);

  const std::string file_;
  UnfinishedFile merged_;
  std::map<RankProcess, Part> parts_;
  std::set<RankProcess> whole_;
};

}  // namespace ringlet::trace
