/** Names of header fields that a policy mentions, and what is wrong with them. */
const FIELD_NAME = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,256}$/;
/** They frame a message, or the gateway itself says them. */
const RESERVED =
  /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*|x-envoy-.*|x-forwarded-.*|x-mergeway-.*)$/i;

export function wrongName(names: readonly string[]): { readonly problem: string } | undefined {
  const wrong = names.find((name) => !FIELD_NAME.test(name));
  return wrong === undefined ? undefined : { problem: `${JSON.stringify(wrong)} is no name of a field` };
}

/** Names of fields that backends get. */
export function wrongSetName(names: readonly string[]): { readonly problem: string } | undefined {
  const reserved = names.find((name) => RESERVED.test(name));
  if (reserved !== undefined) return { problem: `the field ${reserved} cannot be set` };
  return wrongName(names);
}
