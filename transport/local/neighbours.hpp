#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace ringlet::local {

/// Counts the processes of this machine to which a loop has links through rings. Belongs to the loop's thread.
class Neighbours {
 public:
  /// With no processors, those that there are always wait for each other.
  explicit Neighbours(std::size_t processors) : processors_(processors) {}

  /// Whether processes share processors such that, where one fills a ring, the one that empties it seldom runs at the same time: many on
  /// each, or more on one than on the next.
  bool wait_for_processors() const {
    const std::size_t processes = links_ + 1;
    return processes > processors_ && (processes > kMostOfProcessor * processors_ || processes % processors_ != 0);
  }

  /// One link, while it exists.
  class Place {
   public:
    explicit Place(std::shared_ptr<Neighbours> all) : all_(std::move(all)) { ++all_->links_; }
    ~Place() { --all_->links_; }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    const Neighbours& all() const { return *all_; }

   private:
    const std::shared_ptr<Neighbours> all_;
  };

 private:
  // Measured with 2 processors: 4 processes gain 10 to 15 % where nothing is lent, 8 lose 20 %.
  static constexpr std::size_t kMostOfProcessor = 2;

  const std::size_t processors_;
  std::size_t links_ = 0;
};

}  // namespace ringlet::local
