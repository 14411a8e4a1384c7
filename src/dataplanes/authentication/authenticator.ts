/**
 * Asks the authentication guards of a rule, one after the other; the first refusal is the answer.
 * Both data planes ask here: the embedded one itself, Envoy through its external authorization.
 *
 * A tenant's checks may wait for a service that never answers. So each tenant has a number of them
 * at a time, and further ones are refused.
 */
import { type AuthenticationCheck, headersSetBy, isAuthentication } from "../../plan/authentication.ts";
import type { BackendItem } from "../../plan/backend.ts";
import type { CertificateItem } from "../../plan/certificate.ts";
import type { GuardItem } from "../../plan/guard.ts";
import type { ItemId } from "../../plan/plan.ts";
import { checkApiKey } from "./api-keys.ts";
import { checkBasic, KnownPasswords } from "./basic.ts";
import { BcryptComparer } from "./bcrypt.ts";
import {
  type AuthenticationRequest,
  type Decision,
  type FieldList,
  type PermittedRequest,
  type Refusal,
  TOO_LARGE,
  UNDECIDED,
  UNUSABLE,
} from "./foundation/decision.ts";
import { checkJwt } from "./jwt.ts";
import { askAuthorizer } from "./services/authorizer.ts";
import { askService, ExternalServices } from "./services/external.ts";
import { GrpcServices } from "./services/grpc-services.ts";
import { Twins } from "./twins.ts";

/** A client may get several. */
const COOKIE = "set-cookie";
/** Checks of one namespace's policies that wait at a time. */
const MOST_WAITING = 1_024;

export interface AuthenticatorParts {
  readonly guard: (id: ItemId) => GuardItem | undefined;
  readonly backend: (id: ItemId) => BackendItem | undefined;
  /** What the Gateway presents to services that ask for a certificate. */
  readonly clientCertificate: (gateway: string) => CertificateItem | undefined;
}

/** How a request that may pass goes on to its backend. */
export interface Passage {
  readonly allowed: true;
  readonly set: ReadonlyMap<string, string>;
  /** Whether a field of the client does not reach the backend. */
  readonly hides: (name: string) => boolean;
  readonly hiddenQueries: readonly string[];
  /** Fields that the client gets with the answer; those of one name stand together. */
  readonly answer: FieldList;
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;
  readonly #services: ExternalServices;
  readonly #grpcServices: GrpcServices;
  readonly #comparer: BcryptComparer = new BcryptComparer();
  readonly #known: KnownPasswords = new KnownPasswords();
  readonly #waiting: Map<string, number> = new Map();

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
    this.#services = new ExternalServices(parts.clientCertificate);
    this.#grpcServices = new GrpcServices(parts.clientCertificate);
  }

  close(): void {
    this.#services.close();
    this.#grpcServices.close();
    this.#comparer.close();
  }

  async check(
    ids: readonly ItemId[],
    request: AuthenticationRequest,
    signal: AbortSignal,
  ): Promise<Passage | Refusal> {
    const permissions: PermittedRequest[] = [];
    const decided: string[] = [];
    for (const id of ids) {
      const item = this.#parts.guard(id);
      if (item === undefined || !isAuthentication(item.check)) return UNUSABLE;
      const decision = await this.#ask(item, item.check, request, signal);
      if (!decision.allowed) return decision;
      permissions.push(decision);
      // Also what a service has chosen to set: a client's twin of it could be taken for it.
      decided.push(...headersSetBy(item.check), ...decision.set.map(([name]) => name));
    }
    return passage(permissions, decided);
  }

  async #ask(
    { policy: { namespace } }: GuardItem,
    check: AuthenticationCheck,
    request: AuthenticationRequest,
    signal: AbortSignal,
  ): Promise<Decision> {
    const waiting = this.#waiting.get(namespace) ?? 0;
    if (waiting >= MOST_WAITING) return UNDECIDED;
    this.#waiting.set(namespace, waiting + 1);
    try {
      return await this.#decide(check, request, { tenant: namespace, signal });
    } catch {
      return UNDECIDED;
    } finally {
      const rest = (this.#waiting.get(namespace) ?? 1) - 1;
      if (rest === 0) this.#waiting.delete(namespace);
      else this.#waiting.set(namespace, rest);
    }
  }

  async #decide(
    check: AuthenticationCheck,
    request: AuthenticationRequest,
    { tenant, signal }: { readonly tenant: string; readonly signal: AbortSignal },
  ): Promise<Decision> {
    switch (check.type) {
      case "externalAuth": {
        const backend = this.#parts.backend(check.backend);
        if (backend === undefined || backend.refused !== undefined) return UNUSABLE;
        if ((request.body?.length ?? 0) > (check.maxBodyBytes ?? Number.POSITIVE_INFINITY)) return TOO_LARGE;
        return check.protocol === "grpc"
          ? await askAuthorizer(check, request, { backend, services: this.#grpcServices, signal })
          : await askService(check, request, { backend, services: this.#services, signal });
      }
      case "basicAuth":
        return await checkBasic(check, request, {
          ...{ tenant, signal },
          ...{ comparer: this.#comparer, known: this.#known },
        });
      case "apiKeys":
        return checkApiKey(check, request);
      case "jwt":
        return await checkJwt(check, request);
    }
  }
}

function passage(permissions: readonly PermittedRequest[], decided: readonly string[]): Passage {
  const set = new Map<string, string>();
  for (const [name, value] of permissions.flatMap((each) => each.set)) {
    if (!set.has(name)) set.set(name, value);
  }
  const twins = new Twins([...decided, ...permissions.flatMap(({ hiddenHeaders = [] }) => hiddenHeaders)]);
  return {
    allowed: true,
    set,
    hides: (name) => twins.has(name),
    hiddenQueries: permissions.flatMap(({ hiddenQueries = [] }) => hiddenQueries),
    answer: answerOf(permissions),
  };
}

/** Cookies of all guards; of other fields the first guard that sets one decides. */
function answerOf(permissions: readonly PermittedRequest[]): FieldList {
  const fields: (readonly [name: string, value: string])[] = [];
  for (const { answer = [] } of permissions) {
    const known = new Set(fields.map(([name]) => name));
    fields.push(...answer.filter(([name]) => name === COOKIE || !known.has(name)));
  }
  return fields;
}
