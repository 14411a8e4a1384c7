/**
 * Lets only those in who know a key: whoever has started the server. On a machine with several
 * users every one of them reaches loopback. The link that is printed gives the browser a cookie,
 * which no script can read; programs send the key as a bearer token.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AdminAnswer, problem } from "./endpoint.ts";

const OPEN = "/open";

export class AdminSession {
  readonly #key: string = randomBytes(24).toString("base64url");
  /** Cookies of one host are sent to all of its ports: each server has a name of its own. */
  readonly #cookie: string = `mergeway-${randomBytes(6).toString("hex")}`;

  link(url: string): string {
    return `${url}${OPEN}?key=${this.#key}`;
  }

  /** Answers the printed link: the key becomes a cookie, and leaves the address of the page. */
  opens({ method, url = "" }: IncomingMessage, response: ServerResponse): boolean {
    const [path, query = ""] = url.split("?", 2);
    if (path !== OPEN || method !== "GET" || !this.#isKey(new URLSearchParams(query).get("key")))
      return false;
    response.writeHead(303, {
      location: "/",
      "set-cookie": `${this.#cookie}=${this.#key}; Path=/; HttpOnly; SameSite=Lax`,
      "cache-control": "no-store",
    });
    response.end();
    return true;
  }

  refusal({ headers }: IncomingMessage): AdminAnswer | undefined {
    const cookies = (headers.cookie ?? "").split("; ").map((each) => each.split("=", 2));
    const known = [
      cookies.find(([name]) => name === this.#cookie)?.[1],
      /^Bearer (\S+)$/i.exec(headers.authorization ?? "")?.[1],
    ];
    if (known.some((key) => this.#isKey(key))) return undefined;
    return problem(401, "open the link that `mergeway page` has printed");
  }

  #isKey(given: string | null | undefined): boolean {
    const [own, other] = [Buffer.from(this.#key), Buffer.from(given ?? "")];
    return own.length === other.length && timingSafeEqual(own, other);
  }
}
