import { Buffer } from "node:buffer";
import { isObject } from "./compile.ts";
import { show } from "./field-error.ts";
import { isIpv4, isIpv6 } from "./formats.ts";
import { isConfigKey, isDnsSubdomain, isPortName } from "./names.ts";
import type { Pass } from "./pass.ts";

/** What the API server checks and fills in for its own kinds beyond a schema. Given and returning valid shapes. */
export type Finish = (
  object: Readonly<Record<string, unknown>>,
  pass: Pass,
) => Readonly<Record<string, unknown>>;

const MAX_DATA_BYTES = 1024 * 1024;

/** Every namespace carries its own name as a label, so that selectors can name it. */
export const finishNamespace: Finish = (object) => {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const labels = isObject(metadata["labels"]) ? metadata["labels"] : {};
  const name = { "kubernetes.io/metadata.name": metadata["name"] };
  return { ...object, metadata: { ...metadata, labels: { ...labels, ...name } } };
};

export const finishService: Finish = (object, pass) => {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const given: readonly unknown[] = Array.isArray(spec["ports"]) ? spec["ports"] : [];
  const below = ["spec", "ports"] as const;
  if (given.length === 0 && spec["type"] !== "ExternalName" && spec["clusterIP"] !== "None") {
    pass.fail("schema/required", "required field ports is missing", "Add at least one port.", below);
  }
  if (
    spec["type"] === "ExternalName" &&
    !isDnsSubdomain(String(spec["externalName"] ?? "").replace(/\.$/, ""))
  ) {
    const message = "a Service of type ExternalName needs a DNS name";
    pass.fail("schema/required", message, "Set externalName, such as www.example.com.", [
      "spec",
      "externalName",
    ]);
  }
  const names = new Set<string>();
  const numbers = new Set<string>();
  const ports = given.filter(isObject).map((port, index) => {
    const at = (field: string): readonly (string | number)[] => [...below, index, field];
    const name = typeof port["name"] === "string" ? port["name"] : "";
    if (name === "" && given.length > 1) {
      pass.fail(
        "schema/required",
        "a port without name among several",
        "Give every port a name.",
        at("name"),
      );
    } else if (name !== "" && !(name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name))) {
      const remedy = "Use at most 63 lower-case letters, digits and '-'.";
      pass.fail("schema/pattern", `${show(name)} is no valid port name`, remedy, at("name"));
    } else if (name !== "" && names.has(name)) {
      pass.fail("schema/duplicate", `a second port named ${name}`, "Give it another name.", at("name"));
    }
    names.add(name);
    const number = `${String(port["protocol"])} ${String(port["port"])}`;
    if (numbers.has(number)) {
      pass.fail(
        "schema/duplicate",
        `a second port ${number}`,
        "Give it another port or protocol.",
        at("port"),
      );
    }
    numbers.add(number);
    checkTargetPort(port["targetPort"], pass, at("targetPort"));
    return { ...port, targetPort: port["targetPort"] ?? port["port"] };
  });
  return { ...object, spec: { ...spec, ...(Array.isArray(spec["ports"]) && { ports }) } };
};

function checkTargetPort(port: unknown, pass: Pass, below: readonly (string | number)[]): void {
  if (typeof port === "number" && (port < 1 || port > 65535)) {
    pass.fail("schema/maximum", `${port} is no port`, "Use a number from 1 to 65535.", below);
  } else if (typeof port === "string" && !isPortName(port)) {
    const remedy =
      "Use at most 15 lower-case letters, digits and '-', with at least one letter; a number goes unquoted.";
    pass.fail("schema/pattern", `${show(port)} is no valid port name`, remedy, below);
  }
}

/** Unlike the API server this accepts loopback and link-local addresses: in files they are what one has. */
export const finishEndpointSlice: Finish = (object, pass) => {
  const type = object["addressType"];
  const [right, wanted] =
    type === "IPv4"
      ? ([isIpv4, "an IPv4 address"] as const)
      : type === "IPv6"
        ? ([isIpv6, "an IPv6 address"] as const)
        : ([isDnsSubdomain, "a DNS name"] as const);
  const endpoints: readonly unknown[] = Array.isArray(object["endpoints"]) ? object["endpoints"] : [];
  for (const [index, endpoint] of endpoints.entries()) {
    const addresses: unknown = isObject(endpoint) ? endpoint["addresses"] : [];
    for (const [at, address] of Array.isArray(addresses) ? addresses.entries() : []) {
      if (typeof address === "string" && right(address)) continue;
      const message = `${show(address)} is not ${wanted}`;
      const remedy = `Use ${wanted}, or change addressType.`;
      pass.fail("schema/format", message, remedy, ["endpoints", index, "addresses", at]);
    }
  }
  const names = new Set<unknown>();
  const ports: readonly unknown[] = Array.isArray(object["ports"]) ? object["ports"] : [];
  for (const [index, port] of ports.entries()) {
    const name = isObject(port) ? port["name"] : undefined;
    if (names.has(name)) {
      const message = `a second port named ${show(name)}`;
      pass.fail("schema/duplicate", message, "Give it another name.", ["ports", index, "name"]);
    }
    names.add(name);
  }
  return object;
};

const TLS_KEYS = ["tls.crt", "tls.key"];

export const finishSecret: Finish = ({ stringData, ...object }, pass) => {
  const text = isObject(stringData) ? stringData : {};
  const folded = Object.entries(text).map(
    ([key, value]) => [key, Buffer.from(String(value), "utf8").toString("base64")] as const,
  );
  const given = isObject(object["data"]) ? object["data"] : {};
  const data: Readonly<Record<string, unknown>> = { ...given, ...Object.fromEntries(folded) };
  checkData(data, "data", decodedLength, pass);
  if (object["type"] === "kubernetes.io/tls") {
    for (const key of TLS_KEYS.filter((name) => !Object.hasOwn(data, name))) {
      const message = `a Secret of type kubernetes.io/tls needs ${key}`;
      pass.fail("schema/required", message, `Add ${key} to data or stringData.`, ["data", key]);
    }
  }
  return Object.keys(data).length > 0 ? { ...object, data } : object;
};

export const finishConfigMap: Finish = (object, pass) => {
  const data = isObject(object["data"]) ? object["data"] : {};
  const binary = isObject(object["binaryData"]) ? object["binaryData"] : {};
  checkData(data, "data", Buffer.byteLength, pass);
  checkData(binary, "binaryData", decodedLength, pass);
  for (const key of Object.keys(binary).filter((name) => Object.hasOwn(data, name))) {
    const message = `${show(key)} is in data and in binaryData`;
    pass.fail("schema/duplicate", message, "Keep it in one of them.", ["binaryData", key]);
  }
  return object;
};

function checkData(
  data: Readonly<Record<string, unknown>>,
  field: string,
  size: (value: string) => number,
  pass: Pass,
): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(data)) {
    if (!isConfigKey(key)) {
      const remedy = "Use at most 253 letters, digits, '-', '_' and '.'.";
      pass.fail("metadata/data-key", `${show(key)} is no valid key`, remedy, [field, key]);
    }
    bytes += typeof value === "string" ? size(value) : 0;
  }
  if (bytes > MAX_DATA_BYTES) {
    pass.block(
      "metadata/data-size",
      `larger than ${MAX_DATA_BYTES} bytes`,
      "Split it into several objects.",
      [field],
    );
  }
}

function decodedLength(base64: string): number {
  return Buffer.byteLength(base64, "base64");
}
