/** Routes past admission. */

export type Manifest = Readonly<Record<string, unknown>>;

/**
 * A route as no schema has seen it, with what an API server fills in: which values arrive depends
 * on the version of the API that is installed, and Envoy must never meet one that it refuses.
 */
export function unadmitted({ spec, ...route }: RouteManifest): Manifest {
  const [rule = {}] = spec.rules;
  const { matches, filters, backendRefs } = rule as Parts;
  return {
    ...route,
    spec: {
      ...spec,
      parentRefs: spec.parentRefs.map((ref) => ({
        group: "gateway.networking.k8s.io",
        kind: "Gateway",
        ...ref,
      })),
      rules: [
        {
          ...rule,
          ...(backendRefs === undefined ? {} : { backendRefs: backendRefs.map(toService) }),
          ...(filters === undefined ? {} : { filters: filters.map(defaulted) }),
          ...(matches === undefined ? {} : { matches: matches.map(exactly) }),
        },
      ],
    },
  };
}

export interface RouteManifest extends Manifest {
  readonly spec: Manifest & {
    readonly parentRefs: readonly Manifest[];
    readonly rules: readonly Manifest[];
  };
}

interface Parts {
  readonly matches?: readonly Readonly<Record<string, readonly Manifest[]>>[];
  readonly filters?: readonly Readonly<Record<string, Manifest>>[];
  readonly backendRefs?: readonly Manifest[];
}

function toService(ref: unknown): Manifest {
  return { group: "", kind: "Service", weight: 1, ...(ref as Manifest) };
}

function defaulted({
  requestMirror,
  requestRedirect,
  ...filter
}: Readonly<Record<string, Manifest>>): Manifest {
  return {
    ...filter,
    ...(requestMirror && {
      requestMirror: { ...requestMirror, backendRef: toService(requestMirror["backendRef"]) },
    }),
    ...(requestRedirect && { requestRedirect: { statusCode: 302, ...requestRedirect } }),
  };
}

function exactly({
  headers,
  queryParams,
  ...match
}: Readonly<Record<string, readonly Manifest[]>>): Manifest {
  const typed = (each: Manifest): Manifest => ({ type: "Exact", ...each });
  return {
    ...match,
    ...(headers && { headers: headers.map(typed) }),
    ...(queryParams && { queryParams: queryParams.map(typed) }),
  };
}
