// Versions, and the files that name the current one. Each file is edited as text, so that comments
// and layout stay. A file that does not name the version where it should stops the release.

import { ReleaseFailure } from "./failure.ts";

/** `step` is major, minor, patch, or the version itself. */
export function nextVersion(current: string, step: string): string {
  const numbers = /^(\d+)\.(\d+)\.(\d+)$/.exec(current)?.slice(1).map(Number);
  if (numbers === undefined) throw new ReleaseFailure(`package.json has the version ${current}: write X.Y.Z`);
  const [major = 0, minor = 0, patch = 0] = numbers;
  switch (step) {
    case "major":
      return `${major + 1}.0.0`;
    case "minor":
      return `${major}.${minor + 1}.0`;
    case "patch":
      return `${major}.${minor}.${patch + 1}`;
    default:
      return explicitVersion(step, [major, minor, patch]);
  }
}

/** The current version may be asked for: the first release has it already. */
function explicitVersion(step: string, current: readonly number[]): string {
  const wanted = /^(\d+)\.(\d+)\.(\d+)$/.exec(step)?.slice(1).map(Number);
  if (wanted === undefined) throw new ReleaseFailure(`"${step}" is not major, minor, patch or X.Y.Z`);
  const differing = wanted.findIndex((number, index) => number !== current[index]);
  if (differing >= 0 && (wanted[differing] ?? 0) < (current[differing] ?? 0)) {
    throw new ReleaseFailure(`${step} is older than the current version ${current.join(".")}`);
  }
  return step;
}

interface VersionFile {
  readonly path: string;
  readonly places: readonly Place[];
}

/**
 * The text before a version, the text that ends it, and how often both occur: once or more where
 * `times` is absent.
 */
interface Place {
  readonly before: string;
  readonly after?: string;
  readonly times?: number;
}

const chartPlaces = [{ before: "\nversion: ", times: 1 }];
const appVersion = { before: "\nappVersion: ", times: 1 };

export const versionFiles: readonly VersionFile[] = [
  { path: "package.json", places: [{ before: '\n  "version": "', times: 1, after: '"' }] },
  {
    path: "package-lock.json",
    places: [
      { before: '\n  "version": "', times: 1, after: '"' },
      { before: '\n      "name": "mergeway",\n      "version": "', times: 1, after: '"' },
    ],
  },
  {
    path: "charts/mergeway/Chart.yaml",
    places: [...chartPlaces, appVersion, { before: "\n  - name: crds\n    version: ", times: 1 }],
  },
  { path: "charts/mergeway/charts/crds/Chart.yaml", places: [...chartPlaces, appVersion] },
  ...[
    "gatewayparameters",
    "trafficpolicies",
    "clientpolicies",
    "backendpolicies",
    "tenantpolicies",
    "hostnameclaims",
  ].map((plural) => ({
    path: `charts/mergeway/charts/crds/crds/mergeway.dev_${plural}.yaml`,
    places: [{ before: "\n    mergeway.dev/version: ", times: 1 }],
  })),
  {
    path: "Containerfile",
    places: [
      { before: "\nARG VERSION=", times: 1 },
      { before: " -t mergeway:", times: 1, after: " " },
    ],
  },
  { path: "docs/guides/kubernetes.md", places: [{ before: "mergeway:", after: "" }] },
];

export function withVersion(file: VersionFile, text: string, from: string, to: string): string {
  return file.places.reduce((edited, { before, times, after = "\n" }) => {
    const pieces = edited.split(before + from + after);
    const found = pieces.length - 1;
    if (found === 0 || found !== (times ?? found)) {
      const where = JSON.stringify(`${before}${from}`);
      throw new ReleaseFailure(`${file.path} has ${where} ${found} times, not ${times ?? "once or more"}`);
    }
    return pieces.join(before + to + after);
  }, text);
}
