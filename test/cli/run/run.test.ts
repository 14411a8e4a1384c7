/** `mergeway run` as a process, with real sockets. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { folder, freePorts, start } from "../mergeway.ts";
import { backend, gateway, get, saying, serve, team } from "./served-folder.ts";

describe("mergeway run", () => {
  test("serves a folder, prints the table, and stops on SIGTERM", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({ name: "team-b", port, backend: 1, hostname: "team-a.example.com" }),
    });
    const running = serve(path);
    await running.prints(/2 of 3 listeners served on 127\.0\.0\.1/);
    expect(running.stdout()).toMatch(
      /OWNER +LISTENER +PORT +PROTOCOL +HOSTNAME +CERTIFICATE +ROUTES +STATE +HELD BY/,
    );
    expect(running.stdout()).toMatch(
      /ListenerSet team-a\/web +http +\d+ +HTTP +team-a\.example\.com +- +1 +serving/,
    );
    expect(running.stdout()).toMatch(
      /ListenerSet team-b\/web .*conflicted \(HostnameConflict\) +ListenerSet team-a\/web \(http\)/,
    );
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
    running.kill("SIGTERM");
    expect(await running.exited).toBe(0);
    expect(running.stderr()).toMatch(/stopping.*\n.*stopped\n$/);
  });

  test("refuses the admin server as backend, however its address is written", async () => {
    const [port = 0, admin = 0] = await freePorts(2);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: admin }),
      "b.yaml": team({ name: "team-b", port, backend: admin }).replace("127.0.0.1", "0.0.0.0"),
      "c.yaml": team({ name: "team-c", port, backend: await backend(saying("c")) }),
    });
    const running = start(["run", path, "--address", "127.0.0.1", "--admin-address", `127.0.0.1:${admin}`]);
    await running.prints(/4 of 4 listeners served on 127\.0\.0\.1/);
    expect((await get(port, "team-a.example.com", "/api/v1/state")).status).toBe(500);
    expect((await get(port, "team-b.example.com", "/api/v1/state")).status).toBe(500);
    expect(await get(port, "team-c.example.com")).toEqual({ status: 200, body: "c" });
    running.kill("SIGTERM");
    await running.exited;
  });

  test("a port in use fails its own listener only", async () => {
    const [port = 0] = await freePorts(1);
    const taken: Server = createServer();
    taken.listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port: takenPort } = taken.address() as { port: number };
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({ name: "team-b", port: takenPort, backend: 1 }),
    });
    const running = serve(path);
    await running.prints(/2 of 3 listeners served/);
    expect(running.stdout()).toMatch(/ListenerSet team-b\/web .*failed \(PortUnavailable\)/);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
  });

  test("--port-offset adds the offset to every port", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port - 1000),
      "a.yaml": team({ name: "team-a", port: port - 1000, backend: await backend(saying("a")) }),
    });
    const running = serve(path, "--port-offset", "1000");
    await running.prints(/2 of 2 listeners served on 127\.0\.0\.1, each port 1000 higher/);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
  });

  test("finishes a request in flight before it stops", async () => {
    const [port = 0] = await freePorts(1);
    const received = Promise.withResolvers<void>();
    const mayAnswer = Promise.withResolvers<void>();
    const slow = await backend((_request, response) => {
      received.resolve();
      void mayAnswer.promise.then(() => response.end("late"));
    });
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: slow }),
    });
    const running = serve(path, "--grace", "20");
    await running.prints(/listeners served/);
    const answer = get(port, "team-a.example.com");
    await received.promise;
    running.kill("SIGTERM");
    await running.prints(/stopping/);
    mayAnswer.resolve();
    expect(await answer).toEqual({ status: 200, body: "late" });
    expect(await running.exited).toBe(0);
  });

  test("ends at once on a second signal", async () => {
    const [port = 0] = await freePorts(1);
    const received = Promise.withResolvers<void>();
    const never = await backend(() => received.resolve());
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: never }),
    });
    const running = serve(path, "--grace", "3600");
    await running.prints(/listeners served/);
    const answer = get(port, "team-a.example.com").catch((error: Error) => error);
    await received.promise;
    running.kill("SIGINT");
    await running.prints(/stopping/);
    running.kill("SIGINT");
    expect(await running.exited).toBe(130);
    expect(await answer).toBeInstanceOf(Error);
  });

  test.each([
    [["--admin-address", "nonsense"], /--admin-address cannot be "nonsense"/],
    [["--workers", "many"], /--workers cannot be "many"/],
  ])("%j is refused", async (flags, message) => {
    const running = start(["run", folder({ "a.yaml": "{}" }), ...flags]);
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toMatch(message);
  });
});
