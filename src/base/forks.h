// Which process an object belongs to.
//
// A child of fork() has copies of its parent's objects. Their locks may be held and their
// conditions waited for by threads that the child lacks, and their mapping and file are the
// parent's too. So a child uses none of them: it asks the mark before it takes a lock.
#pragma once

#include <base/assert.h>

#include <new>
#include <thread>

namespace stele::base {

// From now on each child of fork() calls f, before fork() returns there. True; without the memory
// for it the program ends.
bool call_in_children(void (*f)()) noexcept;

// How many forks lie between the process that loaded the library and this one.
unsigned forks() noexcept;

// Made with the object that has it.
class process_mark {
 public:
  process_mark() noexcept : made_at_(forks()) {}
  // The object belongs to the process that this one was forked from.
  bool is_of_parent() const noexcept {
    STELE_ASSERT(made_at_ <= forks());  // no mark comes from a child
    return made_at_ != forks();
  }

 private:
  unsigned made_at_;
};

// Of a parent's thread, in the child: it is neither joined nor detached, because a thread of the
// child may have its id.
inline void forget(std::thread& t) noexcept {
  ::new (&t) std::thread;
}

}  // namespace stele::base
