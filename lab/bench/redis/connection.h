// A connection to a Redis server: commands are words, errors are results. Not thread-safe.
#pragma once

#include <stele/error.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;
struct redisReply;

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
  // The elements of an answer that is an array of texts. Errors: as run().
  [[nodiscard]] result<std::vector<std::string>> list(
      std::initializer_list<std::string_view> words);
  // Sends a command with others, at the latest in finish(), which reads its answer. Errors: as
  // those of finish(), of earlier commands.
  [[nodiscard]] result<> append(std::span<const std::string_view> words);
  [[nodiscard]] result<> append(std::initializer_list<std::string_view> words) {
    return append(std::span(words.begin(), words.size()));
  }
  // Errors: the first of the answers'.
  [[nodiscard]] result<> finish();
  // The next line of a connection that has sent MONITOR.
  [[nodiscard]] result<reply> receive() { return next_reply(); }

 private:
  explicit connection(redisContext* of) : context_(of) {}
  using answer = std::unique_ptr<redisReply, void (*)(void*)>;
  [[nodiscard]] result<> send(std::span<const std::string_view> words);
  [[nodiscard]] result<answer> next_answer();  // an error of the server is an error
  [[nodiscard]] result<reply> next_reply();

  redisContext* context_;
  std::size_t appended_ = 0;
};

// A field of the server's INFO. Errors: io; not_found.
[[nodiscard]] result<std::string> info_of(connection& to, std::string_view section,
                                          std::string_view field);
// Of a number.
[[nodiscard]] result<double> number_of_info(connection& to, std::string_view section,
                                            std::string_view field);

}  // namespace stele::bench::redis
