/**
 * Gateways behind Cloudflare Tunnel in a real cluster, without Cloudflare: API and edge are doubles
 * in the cluster's network, the connector in the pods is a double from an image of its own, or real
 * cloudflared where CLOUDFLARED names one. Everything else is what users get. The tests are in
 * test/e2e/tunnel, and happen in this order. Needs `npm run build`.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ok } from "../../tools/cluster/bed.ts";
import { loadImage } from "../../tools/cluster/cluster.ts";
import { eventually } from "./support/served-cluster.ts";
import { cloudflaredImage } from "./tunnel/cloudflare.ts";
import { conditionTables } from "./tunnel/conditions.ts";
import { credentials } from "./tunnel/credentials.ts";
import { at, EDGE, parameters, secret, TunnelScene } from "./tunnel/scene.ts";
import { serving } from "./tunnel/serving.ts";

const REAL = process.env["CLOUDFLARED"] || undefined;

let scene: TunnelScene;
const inScene = (): TunnelScene => scene;

beforeAll(async () => {
  scene = await TunnelScene.up("e2e-tunnel");
});

afterAll(async () => {
  await scene?.down();
});

serving(inScene);
conditionTables(inScene);
credentials(inScene);

test.skipIf(REAL === undefined)(
  "real cloudflared in the connector's place (skipped where CLOUDFLARED names none)",
  async () => {
    await loadImage(
      scene.cluster.bed.cluster,
      await cloudflaredImage("cloudflared:test", scene.cloudflare.started, REAL ?? ""),
    );
    await scene.cluster.apply(parameters("edge", scene.byApi("cloudflare"), "cloudflared:test"));
    await ok(
      scene.cluster.bed.kubectl([
        "-n",
        "infra",
        "rollout",
        "status",
        "deploy/edge-mergeway",
        "--timeout=240s",
      ]),
    );
    await eventually(async () => expect(await scene.answerOf("a.example.com")).toBe("team-a"));
  },
);

test("a Gateway that is deleted takes its tunnel, its pods and its token with it", async () => {
  await scene.cluster.remove(at(EDGE));
  expect((await scene.cloudflare.tunnels()).find(({ id }) => id === scene.tunnel)).toMatchObject({
    deleted: true,
  });
  await eventually(async () => {
    expect(await scene.cluster.infrastructureIn("infra")).toEqual([]);
    expect(await scene.cluster.find(secret("edge-mergeway-tunnel", {}))).toBeUndefined();
  });
});
