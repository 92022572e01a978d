// Reads what MONITOR tells.
#include <base/check.h>
#include <bench/redis/mirror.h>

#include <algorithm>

namespace stele::bench::redis {
namespace {

constexpr std::string_view end_of_transaction = "the end of a transaction";

int hex_digit(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

// A text as Redis prints it, from behind its first quote; `at` is then behind its last one.
std::string unquoted(std::string_view line, std::size_t& at) {
  std::string text;
  for (; line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      text += line[at];
      continue;
    }
    switch (line[++at]) {
      case 'n':
        text += '\n';
        break;
      case 'r':
        text += '\r';
        break;
      case 't':
        text += '\t';
        break;
      case 'a':
        text += '\a';
        break;
      case 'b':
        text += '\b';
        break;
      case 'x':
        text += static_cast<char>(hex_digit(line[at + 1]) * 16 + hex_digit(line[at + 2]));
        at += 2;
        break;
      default:
        text += line[at];
    }
  }
  ++at;
  return text;
}

// A line is: time [database client] "word" "word" ...
texts words_of(std::string_view line) {
  texts all;
  for (auto at = line.find("] \""); at < line.size(); at = line.find('"', at))
    all.push_back(unquoted(line, at = line.find('"', at) + 1));
  for (char& c : all.front()) c = static_cast<char>(std::toupper(c));
  return all;
}

bool is_of_keys(std::string_view command) {
  constexpr std::string_view others[] = {"EVAL", "EVALSHA", "SCRIPT", "MULTI", "EXEC", "ECHO"};
  return std::ranges::find(others, command) == std::end(others);
}

}  // namespace

result<std::unique_ptr<mirror>> mirror::start(const std::string& folder, std::string_view workload,
                                              const workloads::parameters& p) {
  std::unique_ptr<mirror> made(new mirror);
  auto content = make_redis_workload(workload, p);
  if (!content) return std::unexpected(std::move(content.error()));
  made->content_ = std::move(*content);
  auto started = server::start(folder, {});
  if (!started) return std::unexpected(std::move(started.error()));
  made->server_ = std::move(*started);
  for (auto* to : {&made->to_, &made->told_}) {
    auto opened = connection::open(made->server_->socket());
    if (!opened) return std::unexpected(std::move(opened.error()));
    *to = std::move(*opened);
  }
  if (auto filled = made->content_->fill(*made->to_); !filled)
    return std::unexpected(std::move(filled.error()));
  if (auto begun = made->told_->run({"MONITOR"}); !begun)
    return std::unexpected(std::move(begun.error()));
  made->session_ = made->content_->make_session(made->to_);
  return made;
}

result<> mirror::apply(std::span<const operation> operations, const each_command& each) {
  if (auto done = session_->apply(operations); !done) return done;
  return tell(each);
}

// Those that MONITOR has not told yet.
result<> mirror::tell(const each_command& each) {
  if (auto marked = to_->run({"ECHO", end_of_transaction}); !marked)
    return std::unexpected(std::move(marked.error()));
  for (;;) {
    const auto line = told_->receive();
    if (!line) return std::unexpected(line.error());
    const texts command = words_of(line->text);
    if (command.front() == "ECHO" && command.back() == end_of_transaction) return {};
    if (!is_of_keys(command.front())) continue;
    if (auto done = each(command); !done) return done;
  }
}

result<> mirror::content(const each_command& each) {
  auto keys = to_->list({"KEYS", "*"});
  if (!keys) return std::unexpected(std::move(keys.error()));
  std::ranges::sort(*keys);
  for (const std::string& key : *keys) {
    const auto type = to_->run({"TYPE", key});
    if (!type) return std::unexpected(type.error());
    texts command = {type->text == "hash" ? "HSET" : "SET", key};
    if (type->text == "hash") {
      const auto fields = to_->list({"HGETALL", key});
      if (!fields) return std::unexpected(fields.error());
      command.insert(command.end(), fields->begin(), fields->end());
    } else {
      auto value = to_->run({"GET", key});
      if (!value) return std::unexpected(std::move(value.error()));
      command.push_back(std::move(value->text));
    }
    if (auto done = each(command); !done) return done;
  }
  return tell([](const texts&) -> result<> { return {}; });
}

}  // namespace stele::bench::redis
