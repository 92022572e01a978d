// Connections by hiredis.
#include <base/check.h>
#include <bench/redis/connection.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cassert>
#include <vector>

namespace stele::bench::redis {
namespace {

constexpr std::size_t most_words = 128, most_appended = 1000;

struct pointers {
  std::array<const char*, most_words> words;
  std::array<std::size_t, most_words> sizes;
  int count = 0;
  explicit pointers(std::span<const std::string_view> from) {
    assert(from.size() <= most_words);
    for (const std::string_view w : from) {
      words[static_cast<std::size_t>(count)] = w.data();
      sizes[static_cast<std::size_t>(count++)] = w.size();
    }
  }
};

}  // namespace

result<std::shared_ptr<connection>> connection::open(const std::string& socket) {
  redisContext* const made = ::redisConnectUnix(socket.c_str());
  if (made == nullptr) return base::fail(errc::io, "no memory for a connection to Redis");
  std::shared_ptr<connection> opened(new connection(made));
  if (made->err != 0)
    return base::fail(errc::io,
                      fmt::format("cannot connect to Redis at {}: {}", socket, made->errstr));
  return opened;
}

connection::~connection() {
  ::redisFree(context_);
}

result<connection::answer> connection::next_answer() {
  void* got = nullptr;
  if (::redisGetReply(context_, &got) != REDIS_OK)
    return base::fail(errc::io, fmt::format("Redis does not answer: {}", context_->errstr));
  answer held(static_cast<redisReply*>(got), ::freeReplyObject);
  if (held->type == REDIS_REPLY_ERROR)
    return base::fail(errc::io, fmt::format("Redis answers: {}", held->str));
  return held;
}

result<reply> connection::next_reply() {
  const auto got = next_answer();
  if (!got) return std::unexpected(got.error());
  const answer& held = *got;
  reply r;
  if (held->type == REDIS_REPLY_STRING || held->type == REDIS_REPLY_STATUS)
    r.text.assign(held->str, held->len);
  if (held->type == REDIS_REPLY_INTEGER) r.number = held->integer;
  if (held->type == REDIS_REPLY_ARRAY)
    for (std::size_t i = 0; i < held->elements; ++i) {
      if (held->element[i]->type == REDIS_REPLY_ERROR)
        return base::fail(errc::io, fmt::format("Redis answers: {}", held->element[i]->str));
      r.elements += held->element[i]->type != REDIS_REPLY_NIL;
    }
  return r;
}

result<> connection::send(std::span<const std::string_view> words) {
  pointers p(words);
  if (::redisAppendCommandArgv(context_, p.count, p.words.data(), p.sizes.data()) != REDIS_OK)
    return base::fail(errc::io, fmt::format("cannot send to Redis: {}", context_->errstr));
  return {};
}

result<reply> connection::run(std::span<const std::string_view> words) {
  if (auto sent = send(words); !sent) return std::unexpected(std::move(sent.error()));
  return next_reply();
}

result<std::vector<std::string>> connection::list(std::initializer_list<std::string_view> words) {
  if (auto sent = send(std::span(words.begin(), words.size())); !sent)
    return std::unexpected(std::move(sent.error()));
  const auto got = next_answer();
  if (!got) return std::unexpected(got.error());
  std::vector<std::string> all;
  for (std::size_t i = 0; i < (*got)->elements; ++i)
    all.emplace_back((*got)->element[i]->str, (*got)->element[i]->len);
  return all;
}

result<> connection::append(std::span<const std::string_view> words) {
  if (auto sent = send(words); !sent) return sent;
  return ++appended_ == most_appended ? finish() : result<>{};
}

result<> connection::finish() {
  result<> all;
  for (; appended_ != 0; --appended_)
    if (auto one = next_reply(); !one && all) all = std::unexpected(std::move(one.error()));
  return all;
}

result<std::string> info_of(connection& to, std::string_view section, std::string_view field) {
  auto told = to.run({"INFO", section});
  if (!told) return std::unexpected(std::move(told.error()));
  const std::string start = fmt::format("\n{}:", field);
  const auto at = told->text.find(start);
  if (at == std::string::npos)
    return base::fail(errc::not_found, fmt::format("INFO {} has no {}", section, field));
  const auto from = at + start.size();
  return told->text.substr(from, told->text.find('\r', from) - from);
}

result<double> number_of_info(connection& to, std::string_view section, std::string_view field) {
  const auto text = info_of(to, section, field);
  if (!text) return std::unexpected(text.error());
  return std::strtod(text->c_str(), nullptr);
}

}  // namespace stele::bench::redis
