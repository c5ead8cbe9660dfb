#pragma once

namespace ringlet {

/// What the loop has to look at by itself, because the system reports no event for it: memory that another process writes. All calls come
/// from the loop's thread, never inside a callback.
class PollSource {
 public:
  /// Does what there is to do, and returns whether there was anything. May destroy the source.
  virtual bool poll() = 0;
  /// The loop is about to block. From now on, until awake(), the source has to make sure that a socket of the loop becomes readable once
  /// there is something to do. Returns false if there is something already; the loop then does not block.
  virtual bool prepare_to_block() = 0;
  /// The loop does not block any more. Follows each prepare_to_block(), also one that returned false.
  virtual void awake() = 0;

 protected:
  ~PollSource() = default;
};

/// A loop that looks at sources in each of its turns. Belongs to the loop's thread.
class PollSources {
 public:
  virtual void add_source(PollSource& source) = 0;
  /// May be called in poll() of any source. A source that was not added is ignored.
  virtual void remove_source(PollSource& source) = 0;

 protected:
  ~PollSources() = default;
};

}  // namespace ringlet
