/** Conformance features (names of the Gateway API suite, v1.7.0) that the embedded data plane serves. */
export const embeddedFeatures: ReadonlySet<string> = new Set(["HTTPRoute"]);
