// A contender in a process of its own, for rivals that allow one pool a process or map fixed
// addresses.
//
// The parent starts the program and talks to it over a socket, the program's descriptor 3: one
// request a line, each answered by one line, "ok ..." or "error CODE SENTENCE".
//
//   task WORKLOAD VALUE_SIZE KEYS READ_SHARE CHOICE THETA CONTENT_SEED OPS_PER_TX THREADS SEED IDLE
//   set_up
//   run SECONDS     answered by transactions, seconds, and VALUE:COUNT for each class of latencies
//   space           answered by bytes, or -1 when the contender does not know
//   check
//
// The parent writes the output of the program nowhere; its last line is part of the error when the
// program ends unasked. The program ends when the parent does, even when the parent is killed.
#pragma once

#include <bench/contender.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stele::bench {

inline constexpr int contender_socket = 3;  // the descriptor of the program that serve() uses

struct contender_program {
  std::string path;
  std::vector<std::string> arguments;    // without the program's name
  std::vector<std::string> environment;  // "NAME=VALUE"; it has no other variables
  std::string folder;                    // where it puts its files; removed at the end, if named
};

// What a row says of a contender that runs in a process of its own.
struct contender_words {
  std::string name, media;
  durability_level survives = durability_level::none;
};

// A contender that starts the program in set_up and ends it in its destructor. `t` goes to the
// program, except its media and folder.
std::unique_ptr<contender> make_contender_process(const task& t, contender_words words,
                                                  contender_program program);

// Serves one contender until the parent closes the socket; the program's exit status.
int serve_contender(int socket, const std::function<contender_result(const task&)>& make);

// The lines of the protocol, without the newline.
std::string words_of(const task& t);
std::string words_of(const measurement& m);
[[nodiscard]] result<task> task_from(std::string_view words);
[[nodiscard]] result<measurement> measurement_from(std::string_view words);

}  // namespace stele::bench
