import { Buffer } from "node:buffer";
import { checkLabels } from "./metadata.ts";
import { isObject } from "./schema/compile.ts";
import { type FieldPath, show } from "./schema/field-error.ts";
import { isIpv4, isIpv6 } from "./schema/formats.ts";
import { isConfigKey, isDnsLabel, isDnsSubdomain, isPortName, isQualifiedName } from "./schema/names.ts";
import type { Pass } from "./schema/pass.ts";

/**
 * What the API server checks and fills in for its own kinds beyond a schema. Given and returning
 * valid shapes.
 */
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
  const given = isObject(object["spec"]) ? object["spec"] : {};
  const spec: Readonly<Record<string, unknown>> = { ...given, type: given["type"] || "ClusterIP" };
  const ports = finishServicePorts(spec, pass);
  checkLabels(spec["selector"], pass, ["spec", "selector"]);
  return { ...object, spec: { ...spec, ...(Array.isArray(spec["ports"]) && { ports }) } };
};

function finishServicePorts(spec: Readonly<Record<string, unknown>>, pass: Pass): readonly unknown[] {
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
  return given.filter(isObject).map((port, index) => {
    const at = (field: string): readonly (string | number)[] => [...below, index, field];
    const name = typeof port["name"] === "string" ? port["name"] : "";
    if (name === "" && given.length > 1) {
      pass.fail(
        "schema/required",
        "a port without name among several",
        "Give every port a name.",
        at("name"),
      );
    } else if (name !== "" && !isDnsLabel(name)) {
      wrongPortName(name, pass, at("name"));
    } else if (name !== "" && names.has(name)) {
      pass.fail("schema/duplicate", `a second port named ${name}`, "Give it another name.", at("name"));
    }
    names.add(name);
    const protocol = port["protocol"] || "TCP";
    const number = `${String(protocol)} ${String(port["port"])}`;
    if (numbers.has(number)) {
      pass.fail(
        "schema/duplicate",
        `a second port ${number}`,
        "Give it another port or protocol.",
        at("port"),
      );
    }
    numbers.add(number);
    checkApplicationProtocol(port["appProtocol"], pass, at("appProtocol"));
    const targetPort = port["targetPort"] || port["port"];
    checkTargetPort(targetPort, pass, at("targetPort"));
    return { ...port, protocol, targetPort };
  });
}

function wrongPortName(name: string, pass: Pass, below: FieldPath): void {
  const remedy = "Use at most 63 lower-case letters, digits and '-'.";
  pass.fail("schema/pattern", `${show(name)} is no valid port name`, remedy, below);
}

function checkApplicationProtocol(protocol: unknown, pass: Pass, below: FieldPath): void {
  if (typeof protocol !== "string" || isQualifiedName(protocol)) return;
  const remedy = "Use a name such as http, or one with a domain before it, such as kubernetes.io/h2c.";
  pass.fail("schema/pattern", `${show(protocol)} is no valid application protocol`, remedy, below);
}

function checkTargetPort(port: unknown, pass: Pass, below: FieldPath): void {
  if (typeof port === "number" && (port < 1 || port > 65535)) {
    pass.fail("schema/maximum", `${port} is no port`, "Use a number from 1 to 65535.", below);
  } else if (typeof port === "string" && !isPortName(port)) {
    const remedy =
      "Use at most 15 lower-case letters, digits and '-', with at least one letter; a number goes unquoted.";
    pass.fail("schema/pattern", `${show(port)} is no valid port name`, remedy, below);
  }
}

/**
 * Unlike the API server this accepts loopback and link-local addresses: in files they are what one
 * has.
 */
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
    const { name, appProtocol } = isObject(port) ? port : {};
    checkApplicationProtocol(appProtocol, pass, ["ports", index, "appProtocol"]);
    if (typeof name === "string" && name !== "" && !isDnsLabel(name)) {
      wrongPortName(name, pass, ["ports", index, "name"]);
    } else if (names.has(name)) {
      const message = `a second port named ${show(name)}`;
      pass.fail("schema/duplicate", message, "Give it another name.", ["ports", index, "name"]);
    }
    names.add(name);
  }
  return object;
};

const TLS_KEYS = ["tls.crt", "tls.key"];

/** Of each of these types a Secret must have one of the keys. */
const ONE_OF_KEYS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["kubernetes.io/basic-auth", ["username", "password"]],
  ["kubernetes.io/ssh-auth", ["ssh-privatekey"]],
]);

export const finishSecret: Finish = ({ stringData, ...object }, pass) => {
  const text = isObject(stringData) ? stringData : {};
  const folded = Object.entries(text).map(
    ([key, value]) => [key, Buffer.from(String(value), "utf8").toString("base64")] as const,
  );
  const given = isObject(object["data"]) ? encodedAgain(object["data"]) : {};
  const data: Readonly<Record<string, unknown>> = { ...given, ...Object.fromEntries(folded) };
  checkData(data, "data", decodedLength, pass);
  if (object["type"] === "kubernetes.io/tls") {
    for (const key of TLS_KEYS.filter((name) => !Object.hasOwn(data, name))) {
      const message = `a Secret of type kubernetes.io/tls needs ${key}`;
      pass.fail("schema/required", message, `Add ${key} to data or stringData.`, ["data", key]);
    }
  }
  const wanted = ONE_OF_KEYS.get(object["type"]);
  if (wanted !== undefined && !wanted.some((name) => Object.hasOwn(data, name))) {
    const keys = wanted.join(" or ");
    const message = `a Secret of type ${String(object["type"])} needs ${keys}`;
    pass.fail("schema/required", message, `Add ${keys} to data or stringData.`, ["data"]);
  }
  const whole = { ...object, type: object["type"] || "Opaque" };
  return Object.keys(data).length > 0 ? { ...whole, data } : whole;
};

/** Base64 as an API server gives it back: in one line, and no stray bits at its end. */
function encodedAgain(data: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const entries = Object.entries(data).map(([key, value]) => [
    key,
    Buffer.from(String(value), "base64").toString("base64"),
  ]);
  return Object.fromEntries(entries) as Record<string, string>;
}

export const finishConfigMap: Finish = (object, pass) => {
  const data = isObject(object["data"]) ? object["data"] : {};
  const binary = isObject(object["binaryData"]) ? object["binaryData"] : {};
  checkData(data, "data", Buffer.byteLength, pass);
  checkData(binary, "binaryData", decodedLength, pass);
  for (const key of Object.keys(binary).filter((name) => Object.hasOwn(data, name))) {
    const message = `${show(key)} is in data and in binaryData`;
    pass.fail("schema/duplicate", message, "Keep it in one of them.", ["binaryData", key]);
  }
  return isObject(object["binaryData"]) ? { ...object, binaryData: encodedAgain(binary) } : object;
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
