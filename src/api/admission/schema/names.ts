import { matcher } from "./patterns.ts";

/** The name rules of Kubernetes. Each takes any string in linear time. */

const label1123 = matcher("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
const subdomain1123 = matcher("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
const labelValue = matcher("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$");
const namePart = matcher("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$");
const configKey = matcher("^[-._a-zA-Z0-9]+$");

export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && label1123(text);
}

export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && subdomain1123(text);
}

export function isLabelValue(text: string): boolean {
  return text.length <= 63 && labelValue(text);
}

/** `name` or `prefix/name`: what keys of labels and annotations look like. */
export function isQualifiedName(text: string): boolean {
  if (text.length > 253 + 1 + 63) return false;
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  if (slash >= 0 && !isDnsSubdomain(text.slice(0, slash))) return false;
  return name.length <= 63 && namePart(name);
}

/** A key of a ConfigMap's or Secret's data. */
export function isConfigKey(text: string): boolean {
  return text.length <= 253 && configKey(text) && text !== "." && !text.startsWith("..");
}

/** A port name: letters, digits and single hyphens, at least one letter. */
export function isPortName(text: string): boolean {
  return text.length <= 15 && label1123(text) && /[a-z]/.test(text) && !text.includes("--");
}
