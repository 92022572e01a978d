// A bounded queue of page copies on their way to a file. Threads that must not wait for the file
// push copies; one thread drains the queue and writes them.
//
// A thread that finds the queue full writes its page itself. Only the constructor allocates memory.
// Thread-safe; one thread at a time drains.
#pragma once

#include <base/assert.h>
#include <tx/page_snapshot.h>

#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace stele::detail {

class page_queue {
 public:
  explicit page_queue(std::size_t count) : buffer_(count * page_snapshot::page_size) {
    for (auto* list : {&queued_, &draining_}) list->reserve(count);
    free_.reserve(count);
    for (std::size_t i = count; i-- > 0;) free_.push_back(i * page_snapshot::page_size);
  }

  // Copies `bytes`, at most a page. False: the queue is full.
  bool try_push(std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
    STELE_ASSERT(!bytes.empty() && bytes.size() <= page_snapshot::page_size);
    std::size_t slot;
    {
      const std::lock_guard hold(mutex_);
      if (free_.empty()) return false;
      slot = free_.back();
      free_.pop_back();
    }
    std::memcpy(buffer_.data() + slot, bytes.data(), bytes.size());
    const std::lock_guard hold(mutex_);
    STELE_ASSERT(queued_.size() < queued_.capacity());  // noexcept: no memory is asked for
    queued_.push_back({slot, bytes.size(), offset});
    return true;
  }
  // Calls put(bytes, offset) for each copy that is queued now. Stops at the first error and returns
  // it; the other copies are dropped.
  template <class Put>
  auto drain(Put&& put) -> decltype(put(std::span<const std::byte>(), std::uint64_t{})) {
    {
      const std::lock_guard hold(mutex_);
      STELE_ASSERT(draining_.empty());  // one thread drains
      std::swap(queued_, draining_);
    }
    const end_of_drain when_done(*this);
    for (const page& p : draining_)
      if (auto done = put({buffer_.data() + p.slot, p.size}, p.offset); !done) return done;
    return {};
  }

 private:
  // Frees the slots that are drained, also after an error or an exception.
  class end_of_drain {
   public:
    explicit end_of_drain(page_queue& q) noexcept : queue_(q) {}
    ~end_of_drain() {
      const std::lock_guard hold(queue_.mutex_);
      STELE_ASSERT(queue_.free_.size() + queue_.queued_.size() + queue_.draining_.size() <=
                   queue_.free_.capacity());
      for (const page& p : queue_.draining_) queue_.free_.push_back(p.slot);
      queue_.draining_.clear();
    }
    end_of_drain(const end_of_drain&) = delete;
    end_of_drain& operator=(const end_of_drain&) = delete;

   private:
    page_queue& queue_;
  };
  struct page {
    std::size_t slot, size;
    std::uint64_t offset;
  };

  std::vector<std::byte> buffer_;
  std::mutex mutex_;
  std::vector<std::size_t> free_;
  std::vector<page> queued_, draining_;
};

}  // namespace stele::detail
