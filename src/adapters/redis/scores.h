// What the commands on one sorted set and on several share.
#pragma once

#include "collections.h"

namespace stele::redis {

struct scored {
  std::string member;
  double score;
};
using scores = std::vector<scored>;

// `nested`: in Redis' newer protocol each member is in an array with its score.
void reply_scores(const call& c, api::context* to, const scores& all, bool with_scores,
                  bool nested);
// Sets the first argument's key to these and answers how many. Replicates as `name`, notifies
// `event`.
int store_scores(const call& c, const scores& all, const char* name, const char* event);

}  // namespace stele::redis
