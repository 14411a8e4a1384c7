/** No message about a broken Secret quotes a value of it. */
import { describe, expect, test } from "vitest";
import type { ApiObject } from "../../../src/kubernetes/api-object.ts";
import { jsonLines } from "../../../src/kubernetes/json-lines.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";
import { shaperOf } from "../../../src/sources/kubernetes/shape.ts";

const VALUE = "hunter2";

const secret = (fields: string): string =>
  `apiVersion: v1\nkind: Secret\nmetadata: { name: s, namespace: team }\n${fields}\n`;

const pem = (content: string): string =>
  `    -----BEGIN PRIVATE KEY-----\n    ${content}\n    -----END PRIVATE KEY-----\n`;

const broken: Readonly<Record<string, string>> = {
  "data that is not base64": secret(`data: { password: "${VALUE}" }`),
  "data that is a number": secret("data: { password: 8732 }"),
  "data that is a list": secret(`data: { password: [${VALUE}] }`),
  "data that is no map": secret(`data: ${VALUE}`),
  "stringData that is a number": secret("stringData: { password: 8732 }"),
  "stringData that is no map": secret(`stringData: ${VALUE}`),
  "stringData that is an object": secret(`stringData: { password: { is: ${VALUE} } }`),
  "a key that does not parse and is not base64": secret(
    `type: kubernetes.io/tls\ndata:\n  tls.crt: ""\n  tls.key: |\n${pem(VALUE)}`,
  ),
  "a type that is none": secret(`type: [${VALUE}]\ndata: {}`),
  "immutable that is no boolean": secret(`immutable: ${VALUE}`),
  "an alias for a value": secret(`stringData: { password: *${VALUE} }`),
  "a wrong escape in a value": secret(`stringData: { password: "\\u${VALUE}" }`),
  "a reserved sign before a value": secret(`stringData:\n  password: @${VALUE}`),
  "a value behind the sign of a block": secret(`stringData:\n  password: | ${VALUE}`),
  "a value behind a quote": secret(`stringData:\n  password: "a" ${VALUE}`),
  "a value that is a key": secret(`stringData:\n  password: a: ${VALUE}`),
  "a value at the margin": secret(`stringData:\n  password: |\n${VALUE}\n`),
  "a value behind a closed bracket": secret(`stringData: { a: b } ${VALUE}`),
  "a value behind a bracket too many": secret(`stringData: { a: b }} ${VALUE}`),
  "a value alone": VALUE,
  "a value in a List": `apiVersion: v1\nkind: List\nitems: [${VALUE}]\n`,
  "a value in place of a Secret in a List": `apiVersion: v1\nkind: List\nitems:\n- ${secret(`data: { a: "${VALUE}" }`).replaceAll("\n", "\n  ")}`,
  "a value in the annotation of kubectl": secret("data: { a: 8732 }").replace(
    "namespace: team",
    `namespace: team, annotations: { kubectl.kubernetes.io/last-applied-configuration: [${VALUE}] }`,
  ),
};

describe("a Secret with", () => {
  test.each(Object.entries(broken))("%s is refused without quoting the value", (_title, text) => {
    const { errors, warnings } = readText(text, "secret.yaml");
    expect(errors.length).toBeGreaterThan(0);
    const messages = JSON.stringify([...errors, ...warnings]);
    expect(messages).not.toContain(VALUE);
    expect(messages).not.toContain("8732");
  });
});

test("a malformed Secret of a cluster is left out without quoting its values", () => {
  const metadata = { name: "s", namespace: "team", resourceVersion: "1" };
  for (const fields of [{ data: { password: 8732 } }, { data: VALUE }, { type: 8732 }]) {
    const shaped = shaperOf("Secret", "v1")({ metadata, ...fields } as unknown as ApiObject);
    expect(shaped).toHaveProperty("problem");
    expect(JSON.stringify(shaped)).not.toMatch(/hunter2|8732/);
  }
});

test("a line of the API server that is not JSON is not quoted", async () => {
  async function* chunks(): AsyncGenerator<Buffer> {
    yield Buffer.from(`{"data":{"password":${VALUE}}}\n`);
  }
  const read = async (): Promise<void> => {
    for await (const _values of jsonLines(chunks()));
  };
  const failure = await read().catch((error: Error) => error.message);
  expect(failure).toMatch(/JSON/);
  expect(failure).not.toContain(VALUE);
});
