// The software bill of materials of the image: Node, and what npm says of the production
// dependencies. It names what is in the image and nothing else. The same lock file always gives the
// same bytes.

import { createHash } from "node:crypto";
import { output } from "../host/processes.ts";

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

interface Dependency {
  readonly ref: string;
  readonly dependsOn: readonly string[];
}

interface Bom {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp?: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
}

/** `shipped` are NAME@VERSION of the packages in the image, `node` is the version of Node in it. */
export async function sbom(root: string, shipped: ReadonlySet<string>, node: string): Promise<string> {
  // Not --omit=dev: npm then leaves out production packages that a development tool needs as well.
  const options = ["--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=application"];
  const bom = JSON.parse(await output("npm", ["sbom", ...options], root)) as Bom;
  return `${JSON.stringify(reproducible(trimmed(bom, shipped, node)), null, 2)}\n`;
}

/** Leaves out what is not shipped: development tools and packages of types. */
export function trimmed(bom: Bom, shipped: ReadonlySet<string>, node: string): Bom {
  const components = bom.components.filter(({ "bom-ref": ref }) => shipped.has(ref));
  const self = bom.metadata.component;
  const known = new Set([self["bom-ref"], ...components.map(({ "bom-ref": ref }) => ref)]);
  const dependencies = bom.dependencies
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => known.has(each)) }));
  // npm calls the package by the name of its folder.
  const [, name = self.name] = /^pkg:npm\/([^@]+)@/.exec(self.purl) ?? [];
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...self, name } },
    components: [...components, runtime(node)],
    dependencies,
  };
}

function runtime(version: string): Component & { readonly type: string; readonly cpe: string } {
  return {
    "bom-ref": `node@${version}`,
    type: "application",
    name: "node",
    version,
    purl: `pkg:generic/node@${version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
  };
}

/** Without the time and the random number that npm puts in. */
function reproducible(bom: Bom): Bom {
  const { timestamp: _, ...metadata } = bom.metadata;
  const { serialNumber: __, ...rest } = bom;
  const hex = createHash("sha256")
    .update(JSON.stringify({ ...rest, metadata }))
    .digest("hex");
  // A UUID of version 8, whose content is the maker's own (RFC 9562, 5.8).
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`];
  return { ...bom, serialNumber: `urn:uuid:${groups.join("-")}-${hex.slice(20, 32)}`, metadata };
}
