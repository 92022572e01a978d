// A connection to a Redis server: commands are words, errors are results. Not thread-safe.
#pragma once

#include <stele/error.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct redisContext;

namespace stele::bench::redis {

// The parts of an answer that measurements look at.
struct reply {
  std::string text;          // of a string or a status; empty: null
  long long number = 0;      // of an integer
  std::size_t elements = 0;  // of an array: those that are not null
};

class connection {
 public:
  // By the path of the server's socket. Errors: io.
  [[nodiscard]] static result<std::shared_ptr<connection>> open(const std::string& socket);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Errors: io, also when the server answers with an error, whose words the message has.
  [[nodiscard]] result<reply> run(std::span<const std::string_view> words);
  [[nodiscard]] result<reply> run(std::initializer_list<std::string_view> words) {
    return run(std::span(words.begin(), words.size()));
  }
  // Sends a command later, with others, and reads its answer in finish().
  void append(std::initializer_list<std::string_view> words);
  // Errors: the first of the answers'.
  [[nodiscard]] result<> finish();

 private:
  explicit connection(redisContext* of) : context_(of) {}
  [[nodiscard]] result<reply> next_reply();

  redisContext* context_;
  std::size_t appended_ = 0;
};

}  // namespace stele::bench::redis
