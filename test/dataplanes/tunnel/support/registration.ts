/**
 * The registration of a connector at the edge: Cap'n Proto RPC of which both sides use only
 * Bootstrap, Call, Return, Finish and Release. Numbers are places in the schema: message kinds, the
 * interface and its methods, sections of structs.
 */
import { bytes, encode, type Node, type Reader, struct, text, words } from "./capnp.ts";

const KIND = { call: 2, return: 3, bootstrap: 8 } as const;
const REGISTRATION = 0xf71695ec7fe85497n;

export interface Registration {
  readonly account: string;
  readonly secret: Buffer;
  /** As a UUID. */
  readonly tunnel: string;
  readonly index: number;
  /** The connector's own UUID, the same for all of its connections. */
  readonly connector: string;
}

export type ToEdge =
  | { readonly type: "bootstrap"; readonly question: number }
  | { readonly type: "register"; readonly question: number; readonly registration: Registration }
  | { readonly type: "unregister"; readonly question: number }
  | { readonly type: "other" };

export function readToEdge(message: Reader): ToEdge {
  const kind = message.u16(0);
  const body = message.struct(0);
  if (body === undefined) return { type: "other" };
  if (kind === KIND.bootstrap) return { type: "bootstrap", question: body.u32(0) };
  if (kind !== KIND.call || body.u64(8) !== REGISTRATION) return { type: "other" };
  const question = body.u32(0);
  const method = body.u16(4);
  if (method === 1) return { type: "unregister", question };
  const parameters = body.struct(1)?.struct(0);
  if (method !== 0 || parameters === undefined) return { type: "other" };
  const auth = parameters.struct(0);
  const client = parameters.struct(2)?.struct(0);
  const registration = {
    account: auth?.text(0) ?? "",
    secret: auth?.bytes(1) ?? Buffer.alloc(0),
    tunnel: uuidOf(parameters.bytes(1)),
    index: parameters.u8(0),
    connector: uuidOf(client?.bytes(0) ?? Buffer.alloc(0)),
  };
  return { type: "register", question, registration };
}

export function bootstrapAnswer(question: number): Buffer {
  // A capability that the edge hosts under the number 0.
  const descriptor = struct(
    words(1, (data) => data.writeUInt16LE(1, 0)),
    undefined,
  );
  const table: Node = { type: "structs", items: [descriptor] };
  return answer(question, struct(words(0), { type: "capability", index: 0 }, table));
}

export function registeredAnswer(question: number, connection: string, location: string): Buffer {
  const remotelyManaged = words(1, (data) => data.writeUInt8(1, 0));
  const details = struct(remotelyManaged, bytes(uuidBytes(connection)), text(location));
  const response = struct(
    words(1, (data) => data.writeUInt16LE(1, 0)),
    details,
  );
  return answer(question, struct(words(0), struct(words(0), response), undefined));
}

export function refusedAnswer(question: number, cause: string): Buffer {
  const failure = struct(words(2), text(cause));
  const response = struct(words(1), failure);
  return answer(question, struct(words(0), struct(words(0), response), undefined));
}

export function emptyAnswer(question: number): Buffer {
  return answer(question, struct(words(0), struct(words(0)), undefined));
}

function answer(question: number, payload: Node): Buffer {
  const body = struct(
    words(2, (data) => data.writeUInt32LE(question, 0)),
    payload,
  );
  return encode(
    struct(
      words(1, (data) => data.writeUInt16LE(KIND.return, 0)),
      body,
    ),
  );
}

export function bootstrapCall(question: number): Buffer {
  const body = struct(
    words(1, (data) => data.writeUInt32LE(question, 0)),
    undefined,
  );
  return encode(
    struct(
      words(1, (data) => data.writeUInt16LE(KIND.bootstrap, 0)),
      body,
    ),
  );
}

/** Called on the answer of the bootstrap, without waiting for it. */
export function registerCall(question: number, bootstrap: number, registration: Registration): Buffer {
  const { account, secret, tunnel, index, connector } = registration;
  const client = struct(words(0), bytes(uuidBytes(connector)), undefined, text("double"), text("double"));
  const parameters = struct(
    words(1, (data) => data.writeUInt8(index, 0)),
    struct(words(0), text(account), bytes(secret)),
    bytes(uuidBytes(tunnel)),
    struct(words(1), client, undefined),
  );
  return call(question, { bootstrap, method: 0, parameters });
}

export function unregisterCall(question: number, bootstrap: number): Buffer {
  return call(question, { bootstrap, method: 1, parameters: struct(words(0)) });
}

function call(
  question: number,
  { bootstrap, method, parameters }: { bootstrap: number; method: number; parameters: Node },
): Buffer {
  const promised = struct(
    words(1, (data) => data.writeUInt32LE(bootstrap, 0)),
    undefined,
  );
  const target = struct(
    words(1, (data) => data.writeUInt16LE(1, 4)),
    promised,
  );
  const data = words(3, (section) => {
    section.writeUInt32LE(question, 0);
    section.writeUInt16LE(method, 4);
    section.writeBigUInt64LE(REGISTRATION, 8);
  });
  const body = struct(data, target, struct(words(0), parameters, undefined), undefined);
  return encode(
    struct(
      words(1, (section) => section.writeUInt16LE(KIND.call, 0)),
      body,
    ),
  );
}

export type ToConnector =
  | { readonly question: number; readonly location: string; readonly remotelyManaged: boolean }
  | { readonly question: number; readonly refused: string }
  | { readonly question: number };

export function readToConnector(message: Reader): ToConnector | undefined {
  const body = message.struct(0);
  if (message.u16(0) !== KIND.return || body === undefined) return undefined;
  const question = body.u32(0);
  const response = body.struct(0)?.struct(0)?.struct(0);
  if (response === undefined) return { question };
  const result = response.struct(0);
  if (response.u16(0) === 0) return { question, refused: result?.text(0) ?? "" };
  return { question, location: result?.text(1) ?? "", remotelyManaged: ((result?.u8(0) ?? 0) & 1) === 1 };
}

function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll("-", ""), "hex");
}

function uuidOf(content: Buffer): string {
  const hex = content.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
