/**
 * What matching needs to know of an HTTP request; the data plane hands in a view of its own request
 * object.
 */
export interface RequestView {
  readonly method: string;
  /** Without the query, after the data plane's normalisation; starts with "/", or is "*". */
  readonly path: string;
  /** Raw, without "?"; empty if there is none. */
  readonly query: string;
  /** Takes a lower-case name; several values come joined with ", ". */
  header(name: string): string | undefined;
}

/**
 * One request while it is matched: parses the query at most once, however many rules ask for it.
 */
export class RequestFacts {
  readonly request: RequestView;
  #query: ReadonlyMap<string, string> | undefined;

  constructor(request: RequestView) {
    this.request = request;
  }

  /** The first value of the name counts. */
  queryParameter(name: string): string | undefined {
    this.#query ??= parseQuery(this.request.query);
    return this.#query.get(name);
  }
}

function parseQuery(query: string): ReadonlyMap<string, string> {
  const first = new Map<string, string>();
  // The "&" keeps URLSearchParams from dropping a leading "?", which here belongs to the first
  // name.
  for (const [name, value] of new URLSearchParams(`&${query}`)) {
    if (!first.has(name)) first.set(name, value);
  }
  return first;
}
