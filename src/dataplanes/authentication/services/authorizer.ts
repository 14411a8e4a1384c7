/**
 * External authorization over gRPC: Envoy's protocol, `envoy.service.auth.v3.Authorization/Check`.
 * The service gets what Envoy would tell it: the peer, method, host, path, fields, and the body
 * where the check says so. It lets a request pass with the status OK, and says what to add, set and
 * remove. Any other status refuses; what is no proper answer is 503 for the client.
 *
 * An answer that sets query parameters is not understood and refuses; dynamic metadata has nobody
 * here to read it.
 */
import type { ExternalAuthCheck } from "../../../plan/authentication.ts";
import type { BackendItem } from "../../../plan/backend.ts";
import * as proto from "../../envoy/wire/proto.ts";
import {
  bytes,
  type Message,
  message,
  nested,
  type Reader,
  read,
  text,
  textMap,
  uint,
} from "../../envoy/wire/protobuf.ts";
import { hopByHopFields } from "../../hop-by-hop-fields.ts";
import {
  type AuthenticationRequest,
  allow,
  type Decision,
  type FieldList,
  FORBIDDEN,
  UNDECIDED,
} from "../foundation/decision.ts";
import { asText, bytesOf } from "../foundation/field-bytes.ts";
import type { GrpcServices } from "./grpc-services.ts";
import { isForClients, isSendableValue, isSettable } from "./service-fields.ts";

const CHECK = "/envoy.service.auth.v3.Authorization/Check";
/** Of a refusal, for the client. */
const LONGEST_BODY = 64 * 1024;
const NEVER_SENT: ReadonlySet<string> = new Set(hopByHopFields);

interface Asked {
  readonly backend: BackendItem;
  readonly services: GrpcServices;
  readonly signal: AbortSignal;
}

export async function askAuthorizer(
  check: ExternalAuthCheck,
  request: AuthenticationRequest,
  { backend, services, signal }: Asked,
): Promise<Decision> {
  const { timeoutMs } = check;
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const call = { path: CHECK, message: checkRequest(check, request), timeoutMs, signal: timeout };
  for (const endpoint of services.turns.order(backend)) {
    const outcome = await services.call(backend, endpoint, call);
    if (outcome === "failed" || timeout.aborted) return UNDECIDED;
    if (outcome !== "refused") return decisionOf(check, request, outcome.message);
  }
  return UNDECIDED;
}

function checkRequest(check: ExternalAuthCheck, request: AuthenticationRequest): Message<proto.CheckRequest> {
  const { method, authority, path, query, headers, body, peer, protocol } = request;
  const target = query === "" ? path : `${path}?${query}`;
  const scheme = headers.get("x-forwarded-proto") ?? "http";
  const http = message(
    text(proto.AttributeContextHttpRequest.id, headers.get("x-request-id")),
    text(proto.AttributeContextHttpRequest.method, method),
    textMap(proto.AttributeContextHttpRequest.headers, [
      ...fieldsFor(check, headers),
      ...(check.requestHeaders === undefined
        ? ([
            [":authority", authority],
            [":method", method],
            [":path", target],
            [":scheme", scheme],
          ] as const)
        : []),
    ]),
    text(proto.AttributeContextHttpRequest.path, target),
    text(proto.AttributeContextHttpRequest.host, authority),
    text(proto.AttributeContextHttpRequest.scheme, scheme),
    text(proto.AttributeContextHttpRequest.protocol, protocol),
    ...(check.maxBodyBytes === undefined || body === undefined ? [] : bodyFields(body)),
  );
  const source =
    peer === undefined ? undefined : message(nested(proto.AttributeContextPeer.address, at(peer)));
  return message(
    nested(
      proto.CheckRequest.attributes,
      message(
        nested(proto.AttributeContext.source, source),
        nested(proto.AttributeContext.request, message(nested(proto.AttributeContextRequest.http, http))),
      ),
    ),
  );
}

/** As text where it is text, since services look there first, and as bytes where it is not. */
function bodyFields(body: Uint8Array): readonly ReturnType<typeof text<proto.AttributeContextHttpRequest>>[] {
  const read = Buffer.from(body).toString("utf8");
  const isText = Buffer.from(read).equals(body);
  return [
    uint(proto.AttributeContextHttpRequest.size, body.length),
    isText
      ? text(proto.AttributeContextHttpRequest.body, read)
      : bytes(proto.AttributeContextHttpRequest.rawBody, body),
  ];
}

function at(peer: string): Message<proto.Address> {
  const socket = message(text(proto.SocketAddress.address, peer));
  return message(nested(proto.Address.socketAddress, socket));
}

function fieldsFor({ requestHeaders }: ExternalAuthCheck, headers: ReadonlyMap<string, string>): FieldList {
  const wanted = requestHeaders && new Set(requestHeaders);
  const sent = [...headers].filter(([name]) => {
    if (NEVER_SENT.has(name) || name.startsWith(":") || name.startsWith("x-mergeway-")) return false;
    return wanted === undefined || wanted.has(name);
  });
  return sent.map(([name, value]) => [name, asText(value)]);
}

function decisionOf(check: ExternalAuthCheck, request: AuthenticationRequest, answer: Buffer): Decision {
  try {
    const response = read<proto.CheckResponse>(answer);
    const code = response.message(proto.CheckResponse.status)?.uint(proto.Status.code) ?? 0;
    const denied = response.message(proto.CheckResponse.deniedResponse);
    if (response.message(proto.CheckResponse.errorResponse) !== undefined) return UNDECIDED;
    // An answer that says both yes and no is no.
    if (code !== 0 || denied !== undefined) return refusalOf(denied);
    return permissionOf(check, request, response.message(proto.CheckResponse.okResponse));
  } catch {
    return UNDECIDED;
  }
}

function refusalOf(denied: Reader<proto.DeniedHttpResponse> | undefined): Decision {
  if (denied === undefined) return FORBIDDEN;
  const code = denied.message(proto.DeniedHttpResponse.status)?.uint(proto.HttpStatus.code) ?? 0;
  const body = denied.text(proto.DeniedHttpResponse.body);
  if (Buffer.byteLength(body) > LONGEST_BODY) return UNDECIDED;
  const headers = optionsOf(denied.messages(proto.DeniedHttpResponse.headers));
  if (headers === undefined) return UNDECIDED;
  return {
    allowed: false,
    status: code >= 300 && code <= 599 ? code : 403,
    reason: "ExternallyRefused",
    headers: headers.filter(({ name }) => isForClients(name)).map(({ name, value }) => [name, value]),
    body: Buffer.from(body),
  };
}

function permissionOf(
  { responseHeaders }: ExternalAuthCheck,
  request: AuthenticationRequest,
  ok: Reader<proto.OkHttpResponse> | undefined,
): Decision {
  if (ok === undefined) return allow();
  if (ok.messages(proto.OkHttpResponse.queryParametersToSet).length > 0) return UNDECIDED;
  const headers = optionsOf(ok.messages(proto.OkHttpResponse.headers));
  const answer = optionsOf(ok.messages(proto.OkHttpResponse.responseHeadersToAdd));
  if (headers === undefined || answer === undefined) return UNDECIDED;
  const wanted = responseHeaders && new Set(responseHeaders);
  const settable = headers.filter(({ name }) => isSettable(name) && (wanted?.has(name) ?? true));
  return allow(joined(settable, request.headers), {
    hiddenHeaders: ok.texts(proto.OkHttpResponse.headersToRemove).map(lower).filter(isSettable),
    hiddenQueries: ok.texts(proto.OkHttpResponse.queryParametersToRemove),
    answer: answer.filter(({ name }) => isForClients(name)).map(({ name, value }) => [name, value]),
  });
}

interface FieldOption {
  readonly name: string;
  readonly value: string;
  /** Behind what the client has sent, instead of in its place. */
  readonly isAppended: boolean;
}

/** Undefined: one of them cannot stand in a header. */
function optionsOf(options: readonly Reader<proto.HeaderValueOption>[]): readonly FieldOption[] | undefined {
  const found: FieldOption[] = [];
  for (const option of options) {
    const header = option.message(proto.HeaderValueOption.header);
    const raw = header?.bytes(proto.HeaderValue.rawValue);
    const value =
      raw === undefined
        ? bytesOf(header?.text(proto.HeaderValue.value) ?? "")
        : Buffer.from(raw).toString("latin1");
    const name = lower(header?.text(proto.HeaderValue.key) ?? "");
    if (value === undefined || !isSendableValue(value)) return undefined;
    // In these messages `append` is off unless it says otherwise (OkHttpResponse.headers).
    const append = option.message(proto.HeaderValueOption.append)?.flag(proto.BoolValue.value);
    found.push({ name, value, isAppended: append === true });
  }
  return found;
}

function joined(options: readonly FieldOption[], sent: ReadonlyMap<string, string>): FieldList {
  const fields = new Map<string, string>();
  for (const { name, value, isAppended } of options) {
    const before = fields.get(name) ?? (isAppended ? sent.get(name) : undefined);
    fields.set(name, before === undefined ? value : `${before},${value}`);
  }
  return [...fields];
}

function lower(name: string): string {
  return name.toLowerCase();
}
