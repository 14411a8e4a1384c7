/**
 * Compressors (envoy.extensions.filters.http.compressor.v3). A route cannot say which lengths and
 * types a compressor of the listener takes, so none stands there: an empty composite filter does,
 * and does nothing until a route or scope gives it the compressors to run. Several of them in one
 * place are safe, as none of them ever waits for anything.
 */

import type { CompressionAlgorithm, CompressionPolicy } from "../../../../plan/rule.ts";
import * as proto from "../../wire/proto.ts";
import {
  enumValue,
  explicitText,
  flag,
  type Message,
  message,
  nested,
  nestedEach,
  uint,
} from "../../wire/protobuf.ts";
import { any, extension, matcherExtension, uint32Value } from "../core.ts";
import { httpFilter } from "../http-filters.ts";

const COMPOSITE = "envoy.extensions.filters.http.composite.v3.Composite";
const PER_ROUTE = "envoy.extensions.filters.http.composite.v3.CompositePerRoute";
const LIBRARIES = "envoy.extensions.compression";
const PARTIAL_CONTENT = 206;

/** Low levels, as in the embedded data plane; the windows bound what a compressor takes. */
const MAKERS: Readonly<Record<CompressionAlgorithm, () => Message<proto.TypedExtensionConfig>>> = {
  brotli: () =>
    extension(
      "brotli",
      `${LIBRARIES}.brotli.compressor.v3.Brotli`,
      message(uint32Value(proto.Brotli.quality, 3), uint32Value(proto.Brotli.windowBits, 18)),
    ),
  gzip: () =>
    extension(
      "gzip",
      `${LIBRARIES}.gzip.compressor.v3.Gzip`,
      message(
        uint32Value(proto.Gzip.memoryLevel, 8),
        enumValue(proto.Gzip.compressionLevel, proto.GzipLevel.COMPRESSION_LEVEL_4),
        uint32Value(proto.Gzip.windowBits, 15),
      ),
    ),
  zstd: () =>
    extension(
      "zstd",
      `${LIBRARIES}.zstd.compressor.v3.Zstd`,
      message(uint32Value(proto.Zstd.compressionLevel, 1)),
    ),
};

export function compressionFilter(name: string): Message<proto.HttpFilter> {
  return httpFilter(name, COMPOSITE, message());
}

/** For a scope, or a route that has it otherwise. */
export function routeCompression(policy: CompressionPolicy): Message<proto.Any> {
  const chain = message(
    nestedEach(
      proto.CompositeChain.typedConfig,
      policy.algorithms.map((algorithm) => compressor(algorithm, policy)),
    ),
  );
  const action = matcherExtension(
    "compress",
    "envoy.extensions.filters.http.composite.v3.ExecuteFilterAction",
    message(nested(proto.ExecuteFilterAction.filterChain, chain)),
  );
  const always = message(nested(proto.Matcher.onNoMatch, message(nested(proto.OnMatch.action, action))));
  return any(PER_ROUTE, message(nested(proto.CompositePerRoute.matcher, always)));
}

/** For a route without, whose scope has it. */
export function compressionOff(): Message<proto.Any> {
  return any(PER_ROUTE, message(nested(proto.CompositePerRoute.matcher, message())));
}

function compressor(
  algorithm: CompressionAlgorithm,
  { algorithms, minBytes, contentTypes }: CompressionPolicy,
): Message<proto.TypedExtensionConfig> {
  const common = message(
    uint32Value(proto.CommonDirectionConfig.minContentLength, minBytes),
    nestedEach(proto.CommonDirectionConfig.contentTypeMatcher, contentTypes.map(typeMatcher)),
  );
  const answers = message(
    nested(proto.ResponseDirectionConfig.commonConfig, common),
    uint(proto.ResponseDirectionConfig.uncompressibleResponseCodes, PARTIAL_CONTENT),
    flag(proto.ResponseDirectionConfig.weakenEtagOnCompress, true),
  );
  const config = message(
    nested(proto.Compressor.compressorLibrary, MAKERS[algorithm]()),
    nested(proto.Compressor.responseDirectionConfig, answers),
    flag(proto.Compressor.chooseFirst, algorithm === algorithms[0]),
  );
  return extension(algorithm, "envoy.extensions.filters.http.compressor.v3.Compressor", config);
}

function typeMatcher(type: string): Message<proto.StringMatcher> {
  return message(explicitText(proto.StringMatcher.exact, type), flag(proto.StringMatcher.ignoreCase, true));
}
