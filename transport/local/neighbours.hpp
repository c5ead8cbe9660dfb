#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace ringlet::local {

/// Counts the processes of this machine to which a loop has links through rings. Belongs to the loop's thread.
class Neighbours {
 public:
  /// With no processors, they are shared always.
  explicit Neighbours(std::size_t processors) : processors_(processors) {}

  bool share_processors() const { return links_ + 1 > processors_; }

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
  const std::size_t processors_;
  std::size_t links_ = 0;
};

}  // namespace ringlet::local
