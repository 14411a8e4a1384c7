/** Conformance features (names of the Gateway API suite, v1.7.0) that Envoy serves as it is configured here. */
export const envoyFeatures: ReadonlySet<string> = new Set(["HTTPRoute"]);
