/**
 * The header of a message, decoded field by field by the rules of RFC 9113, 8.2 and 8.3.
 *
 * - Pseudo-headers come first, each once, and only those that the message may have.
 * - Connection-specific fields of HTTP/1.1, `te` other than `trailers`, and invalid characters make
 *   a message malformed.
 * - Content-Length is one number (RFC 9110, 8.6).
 * - Fields beyond the limits are counted and dropped.
 */

import type { FieldSink } from "./hpack/decoder.ts";
import { encodings } from "./hpack/encoder.ts";
import { type Field, fieldKind } from "./hpack/field.ts";

export interface FieldBounds {
  readonly headerBytes: number;
  /** 0: no limit. */
  readonly headerCount: number;
  /** Bytes that each field counts besides its name and value. */
  readonly fieldBytes: number;
}

/** `fieldBytes` as RFC 9113, 6.5.2 counts, and as HTTP/1.1 writes: colon, space, end of line. */
export const LISTED_FIELD_BYTES = 32;
export const WRITTEN_FIELD_BYTES = 4;

const digits = /^\d{1,15}$/;

abstract class MessageFields implements FieldSink {
  /** Alternating names and values, without pseudo-headers. */
  readonly fields: string[] = [];
  malformed = false;
  tooLarge = false;
  /** Negative without Content-Length. */
  contentLength = -1;
  protected regularSeen = false;
  readonly #bounds: FieldBounds;
  #size = 0;
  #count = 0;

  constructor(bounds: FieldBounds) {
    this.#bounds = bounds;
  }

  field(field: Field, neverIndexed: boolean): void {
    const { headerBytes, headerCount, fieldBytes } = this.#bounds;
    this.#size += field.size - LISTED_FIELD_BYTES + fieldBytes;
    this.#count++;
    if (this.#size > headerBytes || (headerCount > 0 && this.#count > headerCount)) {
      this.tooLarge = true;
      return;
    }
    if (neverIndexed) encodings.neverIndex(field.name);
    const { kind } = field;
    if (kind === fieldKind.regular) {
      this.regularSeen = true;
      this.fields.push(field.name, field.value);
    } else if (kind >= fieldKind.method && kind <= fieldKind.status) {
      if (this.regularSeen || !this.pseudo(field)) this.malformed = true;
    } else {
      this.regularSeen = true;
      this.special(field);
    }
  }

  /** Takes a pseudo-header. False if the message may not have it. */
  protected abstract pseudo(field: Field): boolean;

  protected special({ kind, name, value }: Field): void {
    if (kind === fieldKind.contentLength) {
      if (this.contentLength >= 0 || !digits.test(value)) this.malformed = true;
      else this.contentLength = Number(value);
    } else if (kind === fieldKind.te) {
      if (value.toLowerCase() !== "trailers") this.malformed = true;
    } else if (kind !== fieldKind.host && kind !== fieldKind.cookie) this.malformed = true;
    this.fields.push(name, value);
  }
}

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const visible = /^[\x21-\x7e]+$/;
/** No user information and no path (RFC 9113, 8.3.1). Routing checks the rest. */
const authorityLike = /^[^@/?#\\]*$/;

export class RequestFields extends MessageFields {
  method = "";
  scheme = "";
  path = "";
  authority: string | undefined;
  protocol: string | undefined;
  host: string | undefined;
  #cookie = -1;
  /** A bit for each pseudo-header that is present, also an empty one. */
  #pseudoSeen = 0;

  /** Whether the request has exactly the pseudo-headers that it must have. */
  isComplete(endStream: boolean): boolean {
    if (this.malformed || (endStream && this.contentLength > 0)) return false;
    const { method, scheme, path, authority, protocol } = this;
    if (!token.test(method) || !authorityLike.test(authority ?? "")) return false;
    if (method === "CONNECT" && protocol === undefined) {
      return scheme === "" && path === "" && authority !== undefined;
    }
    if (protocol !== undefined && (method !== "CONNECT" || authority === undefined)) return false;
    if ((scheme !== "http" && scheme !== "https") || !visible.test(path)) return false;
    return path.charCodeAt(0) === 47 || (path === "*" && method === "OPTIONS");
  }

  protected pseudo({ kind, value }: Field): boolean {
    const bit = 1 << kind;
    if ((this.#pseudoSeen & bit) !== 0) return false;
    this.#pseudoSeen |= bit;
    switch (kind) {
      case fieldKind.method:
        this.method = value;
        return true;
      case fieldKind.scheme:
        this.scheme = value;
        return true;
      case fieldKind.path:
        this.path = value;
        return true;
      case fieldKind.authority:
        this.authority = value;
        return true;
      case fieldKind.protocol:
        this.protocol = value;
        return true;
      default:
        return false;
    }
  }

  protected override special(field: Field): void {
    if (field.kind === fieldKind.host) {
      if (this.host !== undefined) this.malformed = true;
      this.host = field.value;
    } else if (field.kind === fieldKind.cookie && this.#cookie >= 0) {
      // Cookies may come in several fields over HTTP/2 and are one field everywhere else (RFC 9113
      // 8.2.3).
      this.fields[this.#cookie] += `; ${field.value}`;
    } else {
      super.special(field);
      if (field.kind === fieldKind.cookie) this.#cookie = this.fields.length - 1;
    }
  }
}

export class ResponseFields extends MessageFields {
  status = 0;

  get isComplete(): boolean {
    return !this.malformed && this.status >= 100 && this.status !== 101;
  }

  protected pseudo({ kind, value }: Field): boolean {
    if (kind !== fieldKind.status || this.status !== 0 || !/^[1-9]\d\d$/.test(value)) return false;
    this.status = Number(value);
    return true;
  }
}

export class TrailerFields extends MessageFields {
  protected pseudo(): boolean {
    return false;
  }
}

/** Drops the fields of a block that is decoded only to update the dynamic table. */
export const unread: FieldSink = { field: () => {} };
