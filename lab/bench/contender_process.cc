// The protocol between a comparison and a contender in a process of its own.
#include <bench/child_process.h>
#include <bench/contender_process.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

namespace stele::bench {
namespace {

std::unexpected<error> not_understood(std::string_view what, std::string_view words) {
  return std::unexpected(error{errc::io, fmt::format("{} is not understood: '{}'", what, words)});
}

std::string answer_of(const result<>& done) {
  if (done) return "ok";
  std::string sentence = done.error().message;
  for (char& c : sentence)
    if (c == '\n') c = ' ';
  return fmt::format("error {} {}", static_cast<int>(done.error().code), sentence);
}

result<std::string> unpacked(const std::string& answer) {
  if (answer.starts_with("ok")) return answer.substr(std::min<std::size_t>(3, answer.size()));
  std::istringstream in(answer);
  std::string kind, sentence;
  int code = 0;
  if (!(in >> kind >> code) || kind != "error") return not_understood("an answer", answer);
  std::getline(in >> std::ws, sentence);
  return std::unexpected(error{static_cast<errc>(code), sentence});
}

class contender_process final : public contender {
 public:
  contender_process(const task& t, contender_words words, contender_program program)
      : task_(t), words_(std::move(words)), program_(std::move(program)) {}
  ~contender_process() override {
    process_.reset();
    std::error_code ignored;
    if (!program_.folder.empty()) std::filesystem::remove_all(program_.folder, ignored);
  }

  std::string name() const override { return words_.name; }
  std::string media() const override { return words_.media; }
  durability_level durability() const override { return words_.survives; }

  result<> set_up() override {
    auto started = child_process::start(program_.path, program_.arguments, program_.environment);
    if (!started) return std::unexpected(std::move(started.error()));
    process_.emplace(std::move(*started));
    if (auto taken = ask(words_of(task_)); !taken) return std::unexpected(taken.error());
    const auto done = ask("set_up");
    return done ? result<>{} : std::unexpected(done.error());
  }
  result<measurement> run(double seconds) override {
    const auto answer = ask(fmt::format("run {}", seconds));
    return answer ? measurement_from(*answer) : std::unexpected(answer.error());
  }
  footprint space() override {
    footprint f{std::nullopt, live_bytes_of(task_)};
    const auto answer = ask("space");
    std::int64_t bytes = -1;
    if (answer && std::istringstream(*answer) >> bytes && bytes >= 0)
      f.space_bytes = static_cast<std::uint64_t>(bytes);
    return f;
  }
  result<> check() override {
    const auto done = ask("check");
    return done ? result<>{} : std::unexpected(done.error());
  }

 private:
  result<std::string> ask(const std::string& request) {
    const auto answer = process_->ask(request);
    return answer ? unpacked(*answer) : std::unexpected(answer.error());
  }

  const task task_;
  const contender_words words_;
  const contender_program program_;
  std::optional<child_process> process_;
};

// Answers the requests that come before one contender is there, and then those to it.
class server {
 public:
  explicit server(const std::function<contender_result(const task&)>& make) : make_(make) {}

  std::string answer(const std::string& request) {
    std::istringstream in(request);
    std::string verb;
    in >> verb;
    if (verb == "task") return take(request);
    if (!served_) return answer_of(not_understood("a request before the task", request));
    if (verb == "set_up") return answer_of(served_->set_up());
    if (verb == "check") return answer_of(served_->check());
    if (verb == "space") {
      const auto bytes = served_->space().space_bytes;
      return bytes ? fmt::format("ok {}", *bytes) : "ok -1";
    }
    double seconds = 0;
    if (verb != "run" || !(in >> seconds)) return answer_of(not_understood("a request", request));
    auto m = served_->run(seconds);
    return m ? "ok " + words_of(*m) : answer_of(std::unexpected(std::move(m.error())));
  }

 private:
  std::string take(const std::string& request) {
    const auto t = task_from(request);
    if (!t) return answer_of(std::unexpected(t.error()));
    auto made = make_(*t);
    if (!made) return answer_of(std::unexpected(std::move(made.error())));
    served_ = std::move(*made);
    return "ok";
  }

  const std::function<contender_result(const task&)>& make_;
  std::unique_ptr<contender> served_;
};

}  // namespace

// In the order of workloads::key_choice.
static constexpr std::string_view key_choices[] = {"uniform", "zipf", "fresh"};

std::string words_of(const task& t) {
  const auto& p = t.parameters;
  return fmt::format("task {} {} {} {} {} {} {} {} {} {} {}", t.workload, p.value_size, p.keys,
                     p.read_share, key_choices[static_cast<std::size_t>(p.choice)], p.zipf_theta,
                     p.seed, t.ops_per_tx, t.threads, t.seed, t.idle_share);
}

result<task> task_from(std::string_view words) {
  task t;
  auto& p = t.parameters;
  std::string verb, choice;
  std::istringstream in{std::string(words)};
  in >> verb >> t.workload >> p.value_size >> p.keys >> p.read_share >> choice >> p.zipf_theta >>
      p.seed >> t.ops_per_tx >> t.threads >> t.seed >> t.idle_share;
  const auto* const chosen = std::ranges::find(key_choices, choice);
  if (!in || verb != "task" || chosen == std::end(key_choices))
    return not_understood("a task", words);
  p.choice = static_cast<workloads::key_choice>(chosen - key_choices);
  return t;
}

std::string words_of(const measurement& m) {
  std::string words = fmt::format("{} {}", m.transactions, m.seconds);
  m.latency_ns.for_each(
      [&](std::uint64_t ns, std::uint64_t count) { words += fmt::format(" {}:{}", ns, count); });
  return words;
}

result<measurement> measurement_from(std::string_view words) {
  measurement m;
  std::istringstream in{std::string(words)};
  if (!(in >> m.transactions >> m.seconds)) return not_understood("a measurement", words);
  std::uint64_t ns = 0, count = 0;
  for (char colon = 0; in >> ns;) {
    if (!(in >> colon >> count) || colon != ':') return not_understood("a measurement", words);
    m.latency_ns.record(ns, count);
  }
  return m;
}

std::unique_ptr<contender> make_contender_process(const task& t, contender_words words,
                                                  contender_program program) {
  return std::make_unique<contender_process>(t, std::move(words), std::move(program));
}

int serve_contender(int socket, const std::function<contender_result(const task&)>& make) {
  server s(make);
  line_socket lines(socket);
  while (const auto request = lines.receive())
    if (!lines.send(s.answer(*request))) return 1;
  return 0;
}

}  // namespace stele::bench
