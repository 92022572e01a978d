// While a counter lives, the reply functions of the interface are replaced by counting ones.
#include "replies.h"

#include <base/assert.h>

#include <utility>

#include "module_api.h"

namespace stele::redis {

namespace {

long whole = 0, missing = 0;  // answers; elements of arrays that are not given yet
int counters = 0;

void note(long elements) noexcept {
  STELE_ASSERT(elements >= 0 && missing >= 0);
  missing += elements - (missing != 0 ? 1 : 0);
  if (missing == 0) ++whole;
}

// How many answers an answer of this kind has in it.
template <auto& Function>
struct elements_of {
  template <class... Rest>
  static long in(Rest...) noexcept {
    return 0;
  }
};
template <int Each>
struct aggregate {
  static long in(long count) noexcept { return Each * count; }
};
template <>
struct elements_of<api::ReplyWithArray> : aggregate<1> {};
template <>
struct elements_of<api::ReplyWithSet> : aggregate<1> {};
template <>
struct elements_of<api::ReplyWithMap> : aggregate<2> {};

template <auto& Function, class... Rest>
class counted_function {
 public:
  static void begin() noexcept {
    STELE_ASSERT(Function != count);
    of_server_ = Function;
    Function = count;
  }
  static void end() noexcept {
    STELE_ASSERT(Function == count && of_server_ != nullptr);
    Function = of_server_;
  }

 private:
  static int count(api::context* to, Rest... rest) {
    note(elements_of<Function>::in(rest...));
    return of_server_(to, rest...);
  }
  static inline int (*of_server_)(api::context*, Rest...) = nullptr;
};
template <auto& Function, class... Rest>
counted_function<Function, Rest...> counted_as(int (*)(api::context*, Rest...));
template <auto& Function>
using counted = decltype(counted_as<Function>(Function));

template <class Each>
void for_each_function(Each&& each) {
  each(counted<api::ReplyWithLongLong>());
  each(counted<api::ReplyWithError>());
  each(counted<api::ReplyWithSimpleString>());
  each(counted<api::ReplyWithArray>());
  each(counted<api::ReplyWithMap>());
  each(counted<api::ReplyWithSet>());
  each(counted<api::ReplyWithStringBuffer>());
  each(counted<api::ReplyWithDouble>());
  each(counted<api::ReplyWithNullArray>());
  each(counted<api::ReplyWithNull>());
  each(counted<api::ReplyWithCallReply>());
}

}  // namespace

reply_counter::reply_counter() noexcept
    : whole_before_(std::exchange(whole, 0)), missing_before_(std::exchange(missing, 0)) {
  if (counters++ == 0) for_each_function([](auto function) { function.begin(); });
}

reply_counter::~reply_counter() {
  if (--counters == 0) for_each_function([](auto function) { function.end(); });
  whole = whole_before_;
  missing = missing_before_;
}

bool reply_counter::is_none() const noexcept {
  return whole == 0 && missing == 0;
}

bool reply_counter::is_one() const noexcept {
  return whole == 1 && missing == 0;
}

}  // namespace stele::redis
