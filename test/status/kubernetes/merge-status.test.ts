import { describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { featuresStatus, supportedVersion } from "../../../src/status/kubernetes/gateway-class.ts";
import { changedFields, isWritten } from "../../../src/status/kubernetes/merge-status.ts";
import { ownedStatus } from "../../../src/status/kubernetes/ownership.ts";
import { relinquishedFields } from "../../../src/status/kubernetes/relinquish.ts";

const OURS = "mergeway.dev/controller";

function condition(type: string, status: Condition["status"] = "True", reason = type): Condition {
  return { type, status, reason, message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
}

describe("our part of a status over what is there", () => {
  test("keeps others' conditions in their places, and replaces, adds and removes ours", () => {
    const before = [
      condition("example.com/First"),
      condition("Accepted", "False"),
      condition("example.com/Second"),
      condition("AttachedListenerSets"),
    ];
    const own = [condition("Accepted"), condition("Programmed")];
    const { conditions } = changedFields({ conditions: before }, { conditions: own }, OURS);
    expect(conditions).toEqual([before[0], own[0], before[2], own[1]]);
  });

  test("is no change if the content is equal, in any order of fields", () => {
    const { type, status, reason, message, lastTransitionTime } = condition("Accepted");
    const turned = { lastTransitionTime, message, reason, status, type };
    expect(changedFields({ conditions: [turned] }, { conditions: [condition("Accepted")] }, OURS)).toEqual(
      {},
    );
    expect(changedFields(undefined, { listeners: [], addresses: [] }, OURS)).toEqual({});
  });

  test("removes addresses that are gone", () => {
    const addresses = [{ type: "IPAddress", value: "192.0.2.1" }];
    expect(changedFields({ addresses }, { addresses: [] }, OURS)).toEqual({ addresses: [] });
  });

  test("keeps foreign conditions of listeners, and removes listeners that are gone", () => {
    const listener = (name: string, ...conditions: readonly Condition[]): object => ({ name, conditions });
    const foreign = condition("example.com/Foreign");
    const before = [
      listener("gone", condition("Accepted")),
      listener("web", foreign, condition("Accepted", "False")),
    ];
    expect(
      changedFields({ listeners: before }, { listeners: [listener("web", condition("Accepted"))] }, OURS),
    ).toEqual({
      listeners: [listener("web", foreign, condition("Accepted"))],
    });
  });

  test("adds nothing to a list of ancestors that others have filled", () => {
    const foreign = Array.from({ length: 16 }, (_, index) => ({
      ancestorRef: { name: `gw-${index}` },
      controllerName: "other.example/controller",
      conditions: [condition("Accepted")],
    }));
    const mine = { ancestorRef: { name: "gw" }, controllerName: OURS, conditions: [condition("Accepted")] };
    expect(changedFields({ ancestors: foreign }, { ancestors: [mine] }, OURS)).toEqual({});
    expect(changedFields({ ancestors: foreign.slice(1) }, { ancestors: [mine] }, OURS)).toEqual({
      ancestors: [...foreign.slice(1), mine],
    });
  });

  test("treats a parentRef with other fields to the same Gateway as another parent", () => {
    const entry = (parentRef: object): object => ({ parentRef, controllerName: OURS, conditions: [] });
    const before = [entry({ name: "gw" }), entry({ name: "gw", port: 80 })];
    const own = [entry({ name: "gw", sectionName: "web" }), entry({ name: "gw", port: 80 })];
    expect(changedFields({ parents: before }, { parents: own }, OURS)).toEqual({ parents: [own[1], own[0]] });
  });

  test("treats default values of a CRD as not written", () => {
    const initial = {
      ...condition("Accepted", "Unknown", "Pending"),
      lastTransitionTime: "1970-01-01T00:00:00Z",
    };
    expect(isWritten(undefined)).toBe(false);
    expect(isWritten({ conditions: [initial] })).toBe(false);
    expect(isWritten({ conditions: [initial, condition("Programmed")] })).toBe(true);
  });
});

describe("relinquished fields", () => {
  const managed = [
    {
      manager: "mergeway",
      subresource: "status",
      fieldsV1: {
        "f:status": {
          "f:addresses": {},
          "f:conditions": { 'k:{"type":"Accepted"}': {}, 'k:{"type":"ResolvedRefs"}': {} },
          "f:listeners": { 'k:{"name":"web"}': {} },
        },
      },
    },
    { manager: "mergeway", fieldsV1: { "f:spec": { "f:listeners": { 'k:{"name":"spec"}': {} } } } },
    { manager: "other", subresource: "status", fieldsV1: { "f:status": { "f:attachedListenerSets": {} } } },
  ];

  test("are only those that managedFields records as ours", () => {
    const owned = ownedStatus(managed, "mergeway");
    expect(owned).toEqual({
      conditions: new Set(["Accepted", "ResolvedRefs"]),
      listeners: new Set(["web"]),
      fields: new Set(["addresses"]),
    });
    const theirs = [condition("Programmed"), condition("example.com/Foreign")];
    const status = {
      addresses: [{ type: "IPAddress", value: "192.0.2.1" }],
      attachedListenerSets: 4,
      conditions: [condition("Accepted"), condition("ResolvedRefs"), ...theirs],
      listeners: [{ name: "web" }, { name: "theirs" }],
    };
    expect(relinquishedFields(status, owned, "2026-02-02T00:00:00Z")).toEqual({
      addresses: null,
      listeners: [{ name: "theirs" }],
      conditions: [
        expect.objectContaining({
          type: "Accepted",
          status: "Unknown",
          reason: "Pending",
          lastTransitionTime: "2026-02-02T00:00:00Z",
        }),
        ...theirs,
      ],
    });
  });

  test("are none if no field is ours, and none a second time", () => {
    const now = "2026-02-02T00:00:00Z";
    expect(
      relinquishedFields({ conditions: [condition("Accepted")] }, ownedStatus([], "mergeway"), now),
    ).toEqual({});
    const pending = condition("Accepted", "Unknown", "Pending");
    const owned = ownedStatus(managed, "mergeway");
    expect(relinquishedFields({ conditions: [pending] }, owned, now)).toEqual({});
  });
});

describe("what a class says of the installed API", () => {
  test.each([
    [["v1.7.0"], "True"],
    [["v1.7.3"], "True"],
    [["v1.6.1", "v1.7.0"], "False"],
    [["v1.70.0"], "False"],
    [["unknown"], "False"],
    [[], "False"],
  ])("%j is supported: %s", (bundleVersions, status) => {
    expect(supportedVersion({ bundleVersions, isKnown: true }).status).toBe(status);
  });

  test("features are sorted, and left out where the CRD has another shape for them", () => {
    const features = new Set(["HTTPRoute", "Gateway"]);
    expect(featuresStatus(features, { bundleVersions: ["v1.7.0"], isKnown: true })).toEqual({
      supportedFeatures: [{ name: "Gateway" }, { name: "HTTPRoute" }],
    });
    expect(featuresStatus(features, { bundleVersions: ["v1.1.0"], isKnown: true })).toEqual({});
  });
});
