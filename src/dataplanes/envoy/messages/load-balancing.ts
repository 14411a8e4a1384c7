/**
 * Load balancing of a cluster (envoy.extensions.load_balancing_policies). What requests are hashed
 * by stands in the cluster, not in routes: a policy of a Service changes its cluster and nothing
 * else.
 */

import type { HashKey, LoadBalancing } from "../../../plan/load-balancing.ts";
import * as proto from "../wire/proto.ts";
import { flag, type Message, message, nested, text } from "../wire/protobuf.ts";
import { extension } from "./core.ts";

const POLICIES = "envoy.extensions.load_balancing_policies";

export function loadBalancing(balancing: LoadBalancing): Message<proto.LoadBalancingPolicy> {
  const choice = message(nested(proto.LoadBalancingChoice.typedExtensionConfig, extensionOf(balancing)));
  return message(nested(proto.LoadBalancingPolicy.policies, choice));
}

function extensionOf(balancing: LoadBalancing): Message<proto.TypedExtensionConfig> {
  switch (balancing.type) {
    case "roundRobin":
      return extension(
        "envoy.load_balancing_policies.round_robin",
        `${POLICIES}.round_robin.v3.RoundRobin`,
        message(),
      );
    case "random":
      return extension("envoy.load_balancing_policies.random", `${POLICIES}.random.v3.Random`, message());
    // Of two that are drawn: its default.
    case "leastRequest":
      return extension(
        "envoy.load_balancing_policies.least_request",
        `${POLICIES}.least_request.v3.LeastRequest`,
        message(),
      );
    case "hash":
      return extension(
        "envoy.load_balancing_policies.maglev",
        `${POLICIES}.maglev.v3.Maglev`,
        maglev(balancing.key),
      );
  }
}

function maglev(key: HashKey): Message<proto.Maglev> {
  const hashing = message(nested(proto.ConsistentHashingLbConfig.hashPolicy, hashPolicy(key)));
  return message(nested(proto.Maglev.consistentHashingLbConfig, hashing));
}

function hashPolicy(key: HashKey): Message<proto.HashPolicy> {
  switch (key.type) {
    case "header":
      return message(nested(proto.HashPolicy.header, message(text(proto.HashHeader.headerName, key.name))));
    case "cookie":
      return message(nested(proto.HashPolicy.cookie, message(text(proto.HashCookie.name, key.name))));
    case "client":
      return message(
        nested(proto.HashPolicy.connectionProperties, message(flag(proto.HashConnection.sourceIp, true))),
      );
  }
}
