// Error codes, messages and arguments of the C functions.
#include <base/assert.h>
#include <capi/shim.h>
#include <stele/detail/unknown_level.h>

#include <new>

namespace stele::capi {

constinit thread_local stele_tx* running = nullptr;

namespace {

constexpr const char* no_memory = "the process has no memory left; nothing was changed";

// The message of this thread's last error. `text` is used if there is no memory for `kept`.
struct error_text {
  std::string kept;
  const char* text = "";
};
thread_local error_text last_error;

// Code and message of the current exception.
int classify() noexcept {
  try {
    throw;
  } catch (const conflict&) {
    return set_last_error(
        STELE_RETRY,
        "another transaction stands in the way; return from the body, which is then run again");
  } catch (const failure& f) {
    return set_last_error(f.why());
  } catch (const std::bad_alloc&) {
    return set_last_error(STELE_NO_MEMORY, no_memory);
  } catch (const std::exception& e) {
    return set_last_error(STELE_CANCELLED, e.what());
  } catch (...) {
    return set_last_error(STELE_CANCELLED, "the body threw an exception; nothing was changed");
  }
}

std::string text_or_nothing(const char* text) {
  return text != nullptr ? text : "";
}

// One attempt of opening: the exception that the function's calls have met goes on to open().
result<> migrate(migration& m, stele_migrate body, void* arg) {
  stele_tx tx{nullptr};
  void* root = &m.root<std::byte>();
  std::size_t size = m.root_size();
  int own = 0;
  {
    const body_scope here(tx);
    own = body(&tx, m.version(), &root, &size, arg);
  }
  if (tx.thrown) std::rethrow_exception(tx.thrown);
  STELE_ASSERT(tx.state == STELE_OK && tx.pool == nullptr);  // a migration is of no open pool
  if (own != 0)
    return std::unexpected(error{errc::cancelled, "the migration from version " +
                                                      std::to_string(m.version()) + " ended with " +
                                                      std::to_string(own) +
                                                      "; the pool is unchanged and not open"});
  m = migration(m.version(), root, size);
  return {};
}

}  // namespace

int set_last_error(int code, const char* message) noexcept {
  STELE_ASSERT(code != STELE_OK && message != nullptr);
  try {
    last_error.kept = message;
    last_error.text = last_error.kept.c_str();
  } catch (...) {
    last_error.text = no_memory;
  }
  return code;
}
int set_last_error(const error& e) noexcept {
  return set_last_error(code_of(e.code), e.message.c_str());
}

int set_error_from_exception() noexcept {
  const int code = classify();
  STELE_ASSERT(code != STELE_OK && std::current_exception() != nullptr);
  if (running == nullptr) return code;
  running->thrown = std::current_exception();
  return running->state = code;
}

void throw_invalid_argument(std::string message) {
  throw failure({errc::invalid_argument, std::move(message)});
}

durability durability_of(int d) {
  if (d == STELE_DURABLE) return durability::durable;
  if (d == STELE_ORDERED) return durability::ordered;
  throw_invalid_argument("the durability " + std::to_string(d) +
                         " is neither STELE_DURABLE nor STELE_ORDERED");
}

pool_options options_of(const stele_options* options) {
  stele_options o = STELE_OPTIONS_INIT;
  if (options != nullptr) {
    if (options->size < offsetof(stele_options, layout) || options->size > sizeof o)
      throw_invalid_argument(
          "stele_options.size is " + std::to_string(options->size) +
          "; begin with STELE_OPTIONS_INIT, and use a library not older than the header");
    std::memcpy(&o, options, options->size);
  }
  if (o.policy < STELE_STM || o.policy > STELE_EXTERNAL)
    throw_invalid_argument("the policy " + std::to_string(o.policy) +
                           " is none of STELE_STM, STELE_SINGLE_WRITER, STELE_EXTERNAL");
  if (o.verify < STELE_VERIFY_AUTOMATIC || o.verify > STELE_VERIFY_NEVER)
    throw_invalid_argument("verify is " + std::to_string(o.verify) +
                           ", none of STELE_VERIFY_AUTOMATIC, _ALWAYS, _NEVER");
  pool_options to;
  to.create_size = o.create_size;
  to.layout = text_or_nothing(o.layout);
  to.engine.mechanism = text_or_nothing(o.mechanism);
  if (o.media != nullptr) to.engine.media = o.media;
  to.policy = static_cast<concurrency>(o.policy);
  to.engine.background = o.no_background == 0;
  to.engine.log_size = o.log_size;
  to.engine.log_count = o.log_count;
  to.max_size = o.max_size;
  if (o.require != nullptr && *o.require != '\0') {
    const auto level = durability_level_of(o.require);
    if (!level) throw_invalid_argument(stele::detail::unknown_level(o.require));
    to.require = *level;
  }
  to.layout_version = o.layout_version;
  to.engine.verify = static_cast<verification>(o.verify);
  if (o.migrate != nullptr)
    to.migrate = [body = o.migrate, arg = o.migrate_arg](migration& m) {
      return migrate(m, body, arg);
    };
  return to;
}

}  // namespace stele::capi

extern "C" {

const char* stele_version(void) {
  return STELE_VERSION;
}

const char* stele_code_name(int code) {
  if (code == STELE_OK) return "ok";
  if (code == STELE_NO_MEMORY) return "no_memory";
  if (code == STELE_RETRY) return "retry";
  if (code > STELE_INVALID_ARGUMENT || code < STELE_CONFLICT) return "unknown";
  return stele::name_of(static_cast<stele::errc>(-1 - code));
}

const char* stele_error_message(void) {
  return stele::capi::last_error.text;
}

}  // extern "C"
