import { describe, expect, test } from "vitest";
import { type AuditEvent, RightsUse } from "../../tools/cluster/audit-rights.ts";
import type { Right } from "./rights.ts";

const ACCOUNT = { namespace: "mergeway-system", name: "mergeway" };
const RIGHTS: readonly Right[] = [
  { scope: "watched", group: "", resource: "secrets", verb: "get" },
  { scope: "own", group: "", resource: "secrets", verb: "get", name: "mergeway-authority" },
  { scope: "watched", group: "apps", resource: "deployments", verb: "create" },
  { scope: "watched", group: "apps", resource: "deployments", verb: "patch" },
  { scope: "watched", group: "g.test", resource: "things/finalizers", verb: "update", unseen: true },
];

function event(verb: string, objectRef: AuditEvent["objectRef"], code = 200): AuditEvent {
  const user = { username: "system:serviceaccount:mergeway-system:mergeway" };
  return { stage: "ResponseComplete", verb, user, objectRef: objectRef ?? {}, responseStatus: { code } };
}

function reportOf(...events: readonly AuditEvent[]): ReturnType<RightsUse["report"]> {
  const use = new RightsUse(ACCOUNT, RIGHTS);
  for (const each of events) use.take(each);
  return use.report();
}

describe("the use of rights", () => {
  const secret = { resource: "secrets", namespace: "team-a", name: "tls" };
  const authority = { resource: "secrets", namespace: "mergeway-system", name: "mergeway-authority" };
  const deployment = { resource: "deployments", apiGroup: "apps", namespace: "team-a", name: "web" };

  test("is complete when each right was used", () => {
    const applied = event("patch", deployment, 201);
    expect(reportOf(event("get", secret), event("get", authority), applied)).toEqual({
      requests: 3,
      refused: [],
      missing: [],
      unused: [],
    });
  });

  test("counts an apply that changed an object as no creation", () => {
    expect(reportOf(event("patch", deployment)).unused).toContain("watched create deployments.apps");
  });

  test("takes the narrowest right for the one that was needed", () => {
    expect(reportOf(event("get", authority)).unused).toContain("watched get secrets");
    expect(reportOf(event("get", secret)).unused).toContain("own get secrets mergeway-authority");
    const elsewhere = { ...authority, namespace: "team-a" };
    expect(reportOf(event("get", elsewhere)).unused).toContain("own get secrets mergeway-authority");
  });

  test("names what was refused, and what the table has no right for", () => {
    const { refused, missing } = reportOf(
      event("delete", secret, 403),
      event("delete", { ...secret, name: "other" }, 403),
      event("patch", { resource: "things", subresource: "status", apiGroup: "g.test" }),
    );
    expect(refused).toEqual(["delete secrets in team-a"]);
    expect(missing).toEqual(["delete secrets", "patch things/status of g.test"]);
  });

  test("does not take a namespace that is being deleted for a missing right", () => {
    const late = event("get", secret, 403);
    const annotations = { "authorization.k8s.io/decision": "allow" };
    expect(reportOf({ ...late, annotations }).refused).toEqual([]);
    expect(reportOf(late).refused).toEqual(["get secrets in team-a"]);
  });

  test("leaves out others, discovery and the beginning of requests", () => {
    const other = { ...event("delete", secret, 403), user: { username: "admin" } };
    const begun = { ...event("delete", secret), stage: "RequestReceived" };
    const { objectRef: _none, ...discovery } = event("get", undefined);
    expect(reportOf(other, begun, discovery)).toMatchObject({ requests: 0, refused: [], missing: [] });
  });
});
