import type { Schema } from "./schema/schema.ts";

/**
 * The fields of Kubernetes' own kinds that Mergeway reads. Every object keeps its other fields as
 * they are: they are the API server's business, not an error.
 */

const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;
const STRING: Schema = { type: "string" };
const BOOLEAN: Schema = { type: "boolean" };
const PORT: Schema = { type: "integer", format: "int32", minimum: 1, maximum: 65535 };
const PROTOCOLS: readonly string[] = ["TCP", "UDP", "SCTP"];
const PROTOCOL: Schema = { type: "string", enum: PROTOCOLS, default: "TCP" };
/** Go reads null in a map of texts or bytes as an empty one. */
const BASE64_MAP: Schema = {
  type: "object",
  additionalProperties: { type: "string", format: "byte", default: "" },
};
const STRING_MAP: Schema = { type: "object", additionalProperties: { ...STRING, default: "" } };

export const NAMESPACE: Schema = OPEN;

/** In a Service an empty text counts as none; core-checks.ts puts the default in its place. */
export const SERVICE: Schema = {
  ...OPEN,
  properties: {
    spec: {
      ...OPEN,
      default: {},
      properties: {
        type: {
          type: "string",
          enum: ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", ""],
          default: "ClusterIP",
        },
        clusterIP: STRING,
        externalName: STRING,
        selector: STRING_MAP,
        ports: {
          type: "array",
          items: {
            ...OPEN,
            required: ["port"],
            properties: {
              name: STRING,
              port: PORT,
              protocol: { ...PROTOCOL, enum: [...PROTOCOLS, ""] },
              targetPort: { "x-kubernetes-int-or-string": true },
              appProtocol: STRING,
            },
          },
        },
      },
    },
  },
};

export const ENDPOINT_SLICE: Schema = {
  ...OPEN,
  required: ["addressType"],
  properties: {
    addressType: { type: "string", enum: ["IPv4", "IPv6", "FQDN"] },
    endpoints: {
      type: "array",
      maxItems: 1000,
      items: {
        ...OPEN,
        required: ["addresses"],
        properties: {
          addresses: { type: "array", minItems: 1, maxItems: 100, items: STRING },
          conditions: { ...OPEN, properties: { ready: BOOLEAN, serving: BOOLEAN, terminating: BOOLEAN } },
          zone: STRING,
          targetRef: { ...OPEN, properties: { kind: STRING, name: STRING } },
        },
      },
    },
    ports: {
      type: "array",
      maxItems: 20000,
      items: {
        ...OPEN,
        properties: { name: { ...STRING, default: "" }, port: PORT, protocol: PROTOCOL, appProtocol: STRING },
      },
    },
  },
};

export const SECRET: Schema = {
  ...OPEN,
  properties: {
    type: { type: "string", default: "Opaque" },
    data: BASE64_MAP,
    stringData: STRING_MAP,
    immutable: BOOLEAN,
  },
};

export const CONFIG_MAP: Schema = {
  ...OPEN,
  properties: { data: STRING_MAP, binaryData: BASE64_MAP, immutable: BOOLEAN },
};
