#include "tools/launch/rank_traces.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace ringlet::launch {

int RankTraces::open(int rank, int restarts) {
  std::error_code failure;
  std::string name = (std::filesystem::temp_directory_path(failure) / "ringlet-trace-XXXXXX").string();
  if (failure) {
    errno = failure.value();
    return -1;
  }
  // With O_APPEND whole lines stay whole, should the rank's program be several processes.
  UniqueFd file(::mkostemp(name.data(), O_APPEND | O_CLOEXEC));
  if (!file) return -1;
  ::unlink(name.c_str());
  return (open_[{rank, restarts}] = std::move(file)).get();
}

void RankTraces::send(int rank, int restarts) {
  auto file = open_.extract({rank, restarts});
  if (file.empty() || dropped_) return;
  ended_.push_back({rank, restarts, std::move(file.mapped()), 0, false});
  if (ended_.size() == 1) send_piece();
}

void RankTraces::take() {
  if (ended_.empty()) return;
  if (ended_.front().is_whole) ended_.pop_front();
  if (!ended_.empty()) send_piece();
}

void RankTraces::drop() {
  dropped_ = true;
  ended_.clear();
}

void RankTraces::send_piece() {
  File& file = ended_.front();
  job::TracePiece piece{static_cast<std::uint32_t>(file.rank), static_cast<std::uint32_t>(file.restarts), {}};
  piece.data.resize(job::kMaxTracePieceBytes);
  ssize_t count = 0;
  do count = ::pread(file.descriptor.get(), piece.data.data(), piece.data.size(), static_cast<off_t>(file.sent_bytes));
  while (count < 0 && errno == EINTR);
  // What cannot be read is lost like what could not be written.
  piece.data.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  file.sent_bytes += static_cast<std::int64_t>(piece.data.size());
  file.is_whole = piece.data.empty();
  on_piece_(std::move(piece));
}

}  // namespace ringlet::launch
