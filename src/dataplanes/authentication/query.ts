/** A query without the parameters of these names, however they are escaped. The rest stays. */
export function withoutParameters(query: string, names: readonly string[]): string {
  if (names.length === 0) return query;
  return query
    .split("&")
    .filter((part) => !names.includes(parameterName(part)))
    .join("&");
}

function parameterName(part: string): string {
  return [...new URLSearchParams(part).keys()][0] ?? "";
}
