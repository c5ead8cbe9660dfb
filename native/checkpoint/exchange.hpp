#pragma once

#include <exception>
#include <functional>
#include <new>
#include <ringlet/group.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringlet::native {

/// Runs local work (nothing collective) and returns its failure as a status, so that the other ranks can be told.
template <class Work>
Status attempt(Work&& work) {
  try {
    std::forward<Work>(work)();
    return {};
  } catch (const Error& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return {Errc::io_error, "memory is short"};
  } catch (const std::exception& error) {
    return {Errc::io_error, error.what()};
  }
}

/// Ends the world by a `ProtocolError` that blames the rank for what it has sent, such as "a list of files", and says why that is refused.
[[noreturn]] void refuse_from(const Group& group, int rank, std::string_view what, std::string_view why);

/// Returns what `read` makes of what a rank of the group has sent. Whatever `read` throws is the rank's fault, unless memory is short.
template <class Read>
auto read_from(const Group& group, int rank, std::string_view what, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    refuse_from(group, rank, what, error.what());
  }
}

/// How the ranks of a group tell each other texts and failures. All members are collective and throw what the group throws.
class Exchange {
 public:
  Exchange(Group& group, const CallOptions& call) : group_(group), call_(call) {}

  Group& group() const { return group_; }
  const CallOptions& call() const { return call_; }

  /// Every rank's text, in rank order. Throws an `InvalidArgument` on all ranks where the texts together are longer than 256 MiB.
  std::vector<std::string> gather(const std::string& mine) const;
  /// The text of rank `root`.
  std::string broadcast(const std::string& text, int root) const;
  /// Throws the failure of the lowest rank that has one, the same on all ranks, after it has run `undo`. Where the group itself fails,
  /// `undo` is not run.
  void require_ok(const Status& mine, const std::function<void()>& undo = {}) const;
  /// Throws a `MismatchError` on all ranks where the lines of `mine` are not those of rank 0, naming the first that differs. `what` is what
  /// the lines describe, such as "checkpoints".
  void require_same(std::string_view what, const std::string& mine) const;

 private:
  Group& group_;
  CallOptions call_;
};

}  // namespace ringlet::native
