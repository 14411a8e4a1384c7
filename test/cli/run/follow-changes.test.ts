/** `mergeway run` while the files change. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { envoyBinary } from "../../dataplanes/support/envoy-binary.ts";
import { folder, freePorts } from "../mergeway.ts";
import { backend, gateway, get, saying, serve, team } from "./served-folder.ts";

const POLL = { timeout: 20_000, interval: 50 };

describe("mergeway run", () => {
  test("follows changes, hands a hostname over, and prints each change", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({
        name: "team-b",
        port,
        backend: await backend(saying("b")),
        hostname: "team-a.example.com",
      }),
    });
    const running = serve(path);
    await running.prints(/listeners served/);
    rmSync(join(path, "a.yaml"));
    await running.prints(/- HTTP :\d+ team-a\.example\.com {2}ListenerSet team-a\/web, listener http/);
    await running.prints(
      /\+ HTTP :\d+ team-a\.example\.com {2}ListenerSet team-b\/web, listener http: serving/,
    );
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "b" });
    writeFileSync(join(path, "c.yaml"), team({ name: "team-c", port, backend: await backend(saying("c")) }));
    await running.prints(
      /\+ HTTP :\d+ team-c\.example\.com {2}ListenerSet team-c\/web, listener http: serving/,
    );
    expect(await get(port, "team-c.example.com")).toEqual({ status: 200, body: "c" });
  });

  test("keeps serving the objects of a broken file, and reports each error once", async () => {
    const [port = 0] = await freePorts(1);
    const good = team({ name: "team-a", port, backend: await backend(saying("a")) });
    const path = folder({ "gateway.yaml": gateway(port), "a.yaml": good });
    const running = serve(path);
    await running.prints(/listeners served/);
    writeFileSync(join(path, "a.yaml"), good.replace("parentRef:", "parentRef: ["));
    await running.prints(/error .*a\.yaml:\d+:\d+: /);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
    writeFileSync(join(path, "b.yaml"), team({ name: "team-b", port, backend: await backend(saying("b")) }));
    await running.prints(/team-b\/web, listener http: serving/);
    expect(await get(port, "team-b.example.com")).toEqual({ status: 200, body: "b" });
    const reported = running.stderr().match(/a\.yaml:\d+:\d+: /g) ?? [];
    expect(new Set(reported).size).toBe(reported.length);
    writeFileSync(join(path, "a.yaml"), good);
    await running.prints(/all files can be read again/);
  });

  test("serves with Envoy and follows changes", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
    });
    const running = serve(path, "--data-plane", "envoy", "--envoy", envoyBinary());
    await running.prints(/2 of 2 listeners served on 127\.0\.0\.1, by /);
    await expect.poll(async () => (await get(port, "team-a.example.com")).body, POLL).toBe("a");
    writeFileSync(join(path, "b.yaml"), team({ name: "team-b", port, backend: await backend(saying("b")) }));
    await expect.poll(async () => (await get(port, "team-b.example.com")).body, POLL).toBe("b");
    running.kill("SIGTERM");
    expect(await running.exited).toBe(0);
  });

  test("exits with a remedy when Envoy is not installed", async () => {
    const running = serve(
      folder({ "gateway.yaml": gateway(1) }),
      "--data-plane",
      "envoy",
      "--envoy",
      "no-envoy-here",
    );
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toMatch(/Envoy is not there: no-envoy-here[\s\S]*--envoy FILE/);
  });
});
